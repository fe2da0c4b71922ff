"""Changes that were logged as statements: the target executes them in the order of the log, or the applier stops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from connector.applier import open_commit
from connector.applier.replay_check import ReplayCheck, SecondPass
from connector.errors import LogDamaged, Unsupported
from connector.log.compact.scan import Messages
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.targets.target_schema import LoadContent, Loading, TargetSchema
from tests.support.fragments import encoded, in_parts, marker, record, statement
from tests.support.memory_target import MemoryTarget
from tests.unit.applier.test_core import LOG_ID, Rig, history, ids, insert, log, table

UPDATE = "UPDATE orders SET a = RAND()"
DELETE = "DELETE FROM orders"


def event(seqno: int, *changes: dict[str, Any], barrier: int = -1, **fields: Any) -> dict[str, Any]:
    """An event with statements: a barrier, because the log does not tell its tables."""
    return record(seqno, list(changes), shard="#UNKNOWN", last_barrier=barrier, **fields)


def test_rows_and_statements_of_one_event_stay_in_order() -> None:
    target = MemoryTarget()
    both = event(0, insert(1), statement(UPDATE), statement(DELETE), insert(2))
    Rig(target, history([0], 0), statements=True).accept(table(log(both)))
    assert target.log == ["part", f"execute {UPDATE}", f"execute {DELETE}", "stage", "commit 0"]
    assert (target.statements, ids(target)) == ([UPDATE, DELETE], {1, 2})


def test_statement_comes_between_the_events_around_it_in_one_commit() -> None:
    target = MemoryTarget()
    events = [
        record(0, [insert(1)]),
        record(1, [insert(2)]),
        event(2, statement(UPDATE)),
        record(3, [insert(3)], last_barrier=2),
        record(4, [insert(4)], last_barrier=2),
    ]
    Rig(target, history([0], 4), statements=True).accept(table(log(*events)))
    assert target.log == ["part", f"execute {UPDATE}", "stage", "commit 4"]
    assert ids(target) == {1, 2, 3, 4}


def test_statement_in_parts_among_fragments_is_executed_once() -> None:
    target = MemoryTarget()
    one: dict[str, Any] = {"last_frag": False}
    first, second = in_parts(statement(UPDATE), 2)
    values = log(
        event(0, insert(1), fragno=0, **one),
        event(0, first, fragno=1, rows=1, **one),
        event(0, second, fragno=2, rows=1, **one),
        event(0, insert(2), fragno=3, rows=2),
    )
    Rig(target, history([0], 0), statements=True).accept(table(values))
    assert target.log == ["part", f"execute {UPDATE}", "stage", "commit 0"]


def test_savepoint_among_statements_is_not_executed() -> None:
    target = MemoryTarget()
    both = event(0, statement("SAVEPOINT `a`"), statement(UPDATE), statement("RELEASE SAVEPOINT `a`"))
    Rig(target, history([0], 0), statements=True).accept(table(log(both)))
    assert target.statements == [UPDATE]


def test_statement_is_refused_without_the_option() -> None:
    target = MemoryTarget()
    with pytest.raises(Unsupported, match="logged as a statement") as caught:
        Rig(target, history([0], 0)).accept(table(log(event(0, statement(UPDATE)))))
    assert "target.statements: execute" in caught.value.hint
    assert caught.value.where["seqno"] == 0
    assert target.position is None


def test_statements_of_a_transaction_that_was_rolled_back_are_refused() -> None:
    target = MemoryTarget()
    events = [event(0, statement(UPDATE)), event(1, statement(DELETE), barrier=0, outcome="rollback")]
    with pytest.raises(Unsupported, match="rolled back") as caught:
        Rig(target, history([0], 1), statements=True).accept(table(log(*events)))
    assert "--skip-seqno 1 " in caught.value.hint
    assert target.position is None


def test_rows_of_a_transaction_that_was_rolled_back_are_applied_beside_statements() -> None:
    target = MemoryTarget()
    events = [event(0, statement(UPDATE)), record(1, [insert(1)], last_barrier=0, outcome="rollback")]
    Rig(target, history([0], 1), statements=True).accept(table(log(*events)))
    assert ids(target) == {1}


def test_refusal_of_a_statement_names_event_text_and_ways_out() -> None:
    target = MemoryTarget()
    target.failing[f"execute {UPDATE}"] = Unsupported("not this one", hint="another way")
    with pytest.raises(Unsupported) as caught:
        Rig(target, history([0], 1), statements=True).accept(
            table(log(record(0, [insert(1)]), event(1, statement(UPDATE))))
        )
    assert caught.value.where["seqno"] == 1
    assert caught.value.where["sql"] == UPDATE
    assert caught.value.hint.startswith("another way; or make ")
    assert "--skip-seqno 1 " in caught.value.hint


def test_statement_is_not_executed_again_after_a_rewind() -> None:
    target = MemoryTarget()
    target.position = replace(
        TargetPosition(service="shop"), log_id=LogId(LOG_ID), epoch=Epoch(1), rewound_from=Seqno(3), offsets={0: 0}
    )
    assert target.position.seqno == NO_SEQNO
    with pytest.raises(Unsupported, match="cannot be executed again"):
        Rig(target, history([0], 3), statements=True).accept(table(log(event(0, statement(UPDATE)))))


def test_commit_ends_with_enough_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_commit, "COMMIT_STATEMENTS", 2)
    target = MemoryTarget()
    events = [event(seqno, statement(f"UPDATE {seqno}"), barrier=seqno - 1) for seqno in range(5)]
    Rig(target, history([0], 4), statements=True).accept(table(log(*events)))
    assert [one for one in target.log if one.startswith("commit")] == ["commit 1", "commit 3", "commit 4"]


def test_statements_of_an_event_that_is_given_up_are_discarded() -> None:
    target = MemoryTarget()
    rig = Rig(target, history([0], 0), statements=True)
    rig.accept(table(log(event(0, insert(1), statement(UPDATE), fragno=0, last_frag=False))))
    assert target.log == ["part", f"execute {UPDATE}"]
    again = [encoded(marker(2, 0, -1, log_id=LOG_ID)), encoded(record(0, [insert(7)], epoch=2))]
    rig.accept(table(again, offset=2))
    assert target.log[2:] == ["discard", "stage", "commit 0"]
    assert (target.statements, ids(target)) == ([], {7})


class LoadingTarget(MemoryTarget):
    """A target of which a table is being loaded."""

    @property
    def target_schema(self) -> TargetSchema:
        return TargetSchema().with_loading(
            TableName("shop", "other"), Loading(load="l", since=Seqno(0), at=0, state=LoadContent.NEW)
        )


def test_statement_has_a_commit_of_its_own_while_a_table_is_loaded() -> None:
    target = LoadingTarget()
    events = [record(0, [insert(1)]), event(1, statement(UPDATE)), record(2, [insert(2)], last_barrier=1)]
    Rig(target, history([0], 2), statements=True).accept(table(log(*events)))
    assert target.log == ["stage", "commit 0", f"execute {UPDATE}", "commit 1", "stage", "commit 2"]


def test_damaged_event_with_a_statement_is_an_error_of_the_log() -> None:
    with pytest.raises(LogDamaged):
        Rig(MemoryTarget(), history([0], 0), statements=True).accept(
            table(log(event(0, statement(UPDATE), insert(1), rows=7)))
        )


@pytest.mark.parametrize("command", SecondPass)
def test_statement_is_neither_applied_again_nor_undone(command: SecondPass) -> None:
    position = TargetPosition(service="shop", log_id=LogId(LOG_ID), seqno=Seqno(0), epoch=Epoch(1), offsets={0: 2})
    sequencer = EventSequencer[Message, Messages](
        topic="thl.shop", partitions=1, position=position, history=history([0], 1)
    )
    check = ReplayCheck("thl.shop", sequencer, position, Seqno(1), TargetSchema(), command=command)
    events = log(record(0, [insert(1)]), event(1, insert(2), statement(UPDATE)))
    with pytest.raises(Unsupported, match=f"logged as a statement cannot be {command.value}") as refused:
        check.accept(pa.Table.from_batches(table(events[2:], offset=2)))
    assert (refused.value.where["seqno"], refused.value.where["sql"]) == (1, UPDATE)
    assert "nothing was changed" in refused.value.hint
