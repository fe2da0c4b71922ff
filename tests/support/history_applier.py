"""Applies the log of `random_log` to a target with histories, from its position on: a program that tests kill."""

from __future__ import annotations

import json
from random import Random

from connector.applier import open_commit
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.log.compact.history import history_tables
from connector.log.ids import NO_SEQNO
from connector.targets.open import open_target
from connector.targets.postgres import divided_commit
from tests.contract.target_transactions import histories
from tests.unit.applier.test_core import Rig, history, log, table

EVENTS = 40
WANTED = ("shop.keyed", "shop.partly", "shop.bare")


def random_log() -> list[dict[str, object]]:
    """The fragments of all events."""
    return [one for fragments, _ in histories(Random("killed"), EVENTS) for one in fragments]


def main(given: str) -> None:
    """Apply it, a few messages at a time; a large event, and a commit to divide, is one of any size.

    Args:
        given: the fields of `target` in the configuration, as JSON.
    """
    open_commit.STAGE_BYTES = 1  # type: ignore[misc]
    divided_commit.DIVIDED_ROWS = 1  # type: ignore[misc]
    options, values = Target(**json.loads(given), history=WANTED, audit=True), log(*random_log())
    seqno = NO_SEQNO
    while seqno < EVENTS - 1:  # an attempt that finds an intent finishes that alone
        target = open_target(options, SystemClock())
        rig = Rig(target, history([0], EVENTS - 1), history=history_tables(WANTED))
        for begin in range(rig.core.position.offsets.get(0, 0), len(values), 3):
            if not rig.core.done:
                rig.accept(table(values[begin : begin + 3], offset=begin))
        seqno = rig.core.position.seqno
        target.close()
