"""The core finishes a commit that several writers have made in part: with all of its events and no others."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

from connector.applier import finish_intent as finish_intent_module
from connector.applier import open_commit
from connector.applier.skips import Skips
from connector.applier.stop_condition import ToSeqno
from connector.clock import SystemClock
from connector.config.apply import Target as TargetSection
from connector.config.model import Config
from connector.errors import LogDamaged
from connector.kafka.handshake import Agreement
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.position import Intent
from tests.support.fragments import load_record, marker, record, statement
from tests.support.memory_target import MemoryTarget
from tests.unit.applier.test_core import LOG_ID, Rig, encoded, history, ids, insert, log, table

FIRST = 2  # offset of the first event after the position


def half(first: int = 1, last: int = 4) -> MemoryTarget:
    """A target with event 0, and with a part of a commit of these events."""
    target = MemoryTarget()
    Rig(target, history([0], 0)).accept(table(log(record(0, [insert(0)]))))
    assert target.position is not None
    intent = Intent(
        log_id=LOG_ID,
        first=Seqno(first),
        last=Seqno(last),
        epoch=Epoch(1),
        writers=2,
        hash_version=1,
        undivided=frozenset(),
    )
    target.position = replace(target.position, intent=intent)
    target.log.clear()
    return target


def rows(first: int, end: int, **fields: Any) -> list[bytes]:
    return [encoded(record(n, [insert(n)], **fields)) for n in range(first, end)]


@pytest.mark.parametrize("step", [1, 2, 3, 10])
def test_its_events_are_one_commit_however_they_are_read(step: int) -> None:
    target = half()
    rig = Rig(target, history([0], 9))
    values = rows(1, 10)
    for at in range(0, len(values), step):
        rig.accept(table(values[at : at + step], offset=FIRST + at))
        assert rig.core.done == (at + step >= 4)
    assert target.log == ["stage", "commit 4"]
    assert ids(target) == {0, 1, 2, 3, 4}
    assert rig.core.position.intent is None


@pytest.mark.parametrize("mine", [True, False])
def test_rows_of_a_load_for_this_target_are_in_it_for_other_commands_than_apply_too(
    mine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = load_record(1, [insert(1) | {"action": "read"}], targets=("here",))
    read = [pa.Table.from_batches(table([encoded(load), *rows(2, 5)], offset=FIRST))]
    for name, made in {
        "handshake": lambda *_: Agreement(history([0], 9), 1, {0: FIRST}, None),
        "ArrowReader": lambda *_: nullcontext(SimpleNamespace(next=read.pop)),
        "LargeMessages": MagicMock(),
        "RangeReader": MagicMock(),
    }.items():
        monkeypatch.setattr(finish_intent_module, name, made)
    target = half()
    staged: list[int] = []
    monkeypatch.setattr(target, "stage", lambda changes, **_: staged.extend(len(net) for net in changes))
    config = Config(service="shop", target=TargetSection(id="here" if mine else "there"))
    position = finish_intent_module.finish_intent(config, target, target.claim("shop"), SystemClock())
    assert (position.seqno, sum(staged)) == (4, 4 if mine else 3)


def test_it_is_not_cut_where_a_commit_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_commit, "COMMIT_ROWS", 2)
    target = half(last=8)
    Rig(target, history([0], 9)).accept(table(rows(1, 10), offset=FIRST))
    assert target.log == ["stage", "commit 8"]


def test_the_stop_condition_and_skips_are_for_what_comes_after_it() -> None:
    target = half()
    rig = Rig(target, history([0], 9), until=ToSeqno(Seqno(2)), skips=Skips([Seqno(3)], "me@here", "why"))
    rig.accept(table(rows(1, 10), offset=FIRST))
    assert target.log == ["stage", "commit 4"]


@pytest.mark.parametrize("threshold", [0, 1 << 20])
def test_an_event_in_fragments_and_its_void_predecessor(threshold: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was void in the log is not a part of the commit; what was whole before it is."""
    monkeypatch.setattr(open_commit, "FINISHED_BYTES", threshold)
    target = half(last=3)
    rig = Rig(target, history([0, 2], 9))
    values = [
        *rows(1, 2),
        encoded(record(2, [insert(20)], last_frag=False)),
        encoded(record(2, [insert(21)], fragno=1, last_frag=False, rows=2)),
        encoded(marker(2, 2, 1, log_id=LOG_ID)),
        encoded(record(2, [insert(2)], epoch=2, last_frag=False)),
        encoded(record(2, [insert(22)], epoch=2, fragno=1, rows=2)),
        *rows(3, 5, epoch=2),
    ]
    for at, value in enumerate(values):
        rig.accept(table([value], offset=FIRST + at))
    assert ids(target) == {0, 1, 2, 22, 3}
    assert [entry for entry in target.log if entry.startswith("commit")] == ["commit 3"]


def test_an_event_that_becomes_void_meanwhile_is_another_log(monkeypatch: pytest.MonkeyPatch) -> None:
    target = half(last=3)
    rig = Rig(target, history([0], 9))
    values = [*rows(1, 2), encoded(record(2, [insert(20)], last_frag=False)), encoded(marker(2, 2, 1, log_id=LOG_ID))]
    with pytest.raises(LogDamaged):
        for at, value in enumerate(values):
            rig.accept(table([value], offset=FIRST + at))
    assert target.log == []


@pytest.mark.parametrize("threshold", [0, 1 << 20])
def test_an_event_is_staged_in_parts_only_if_it_is_too_large_for_memory(
    threshold: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parts may end elsewhere than at the first try, or it was whole then."""
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 0)
    monkeypatch.setattr(open_commit, "FINISHED_BYTES", threshold)
    target = half(last=1)
    rig = Rig(target, history([0], 1))
    for fragno in range(3):
        change = [insert(fragno + 1)]
        value = encoded(record(1, change, fragno=fragno, last_frag=fragno == 2, rows=fragno + 1))
        rig.accept(table([value], offset=FIRST + fragno))
    assert target.log == [*(() if threshold else ("part", "part")), "stage", "commit 1"]


def test_ddl_within_it_is_another_log() -> None:
    target = half()
    values = [*rows(1, 2), encoded(record(2, [statement("DROP TABLE orders")], kind="ddl", shard="#UNKNOWN"))]
    with pytest.raises(LogDamaged):
        Rig(target, history([0], 9)).accept(table(values, offset=FIRST))
    assert target.log == []
