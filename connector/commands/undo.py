"""`thl undo`: takes a target's data back to an earlier event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import command, option
from connector.commands.grammar.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config


@command(examples={"thl undo --to-seqno 41": "Take back events 42 and later."})
@configured("kafka", "target")
@option(
    "--to-seqno",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="Go back to event N: it stays, and the events after it are taken back.",
)
def undo(config: Config, to_seqno: int) -> None:
    """Take the target back to the state after event N, with the before images in the log.

    An applier that runs is fenced; a commit of several writers that it leaves in part is finished first. Refused
    before any change if a later event cannot be undone: a DDL that had an effect, an initial load, a partial row
    image. `thl apply` goes forward again.
    """
    from contextlib import closing

    from connector.applier.undo import undo as take_back
    from connector.clock import SystemClock
    from connector.log.ids import Seqno
    from connector.targets.open import open_signal_table, open_target

    clock = SystemClock()
    options = config.target.model_copy(update={"writers": 1})
    with closing(open_target(options, clock)) as target, open_signal_table(options) as signals:
        position = take_back(config, target, signals, Seqno(to_seqno), clock)
    click.echo(f"service {config.service} is at event {position.seqno}: {position.event_id}")
