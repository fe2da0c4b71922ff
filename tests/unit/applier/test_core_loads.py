"""The apply core and the loads of tables: edges are commits of their own, rows are compacted with the stream's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from connector.applier import open_commit
from connector.applier.replay_check import ReplayCheck, SecondPass
from connector.applier.skips import Skips
from connector.applier.stop_condition import ToSeqno
from connector.errors import ConfigError, LogDamaged, TargetDiffers, Unsupported
from connector.log.compact.scan import Messages
from connector.log.format.message import Message
from connector.log.ids import UNKNOWN_SHARD, Epoch, Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import Part
from connector.log.transaction.position import TargetPosition
from connector.targets.target_schema import Excluded, LoadContent, Loading, TargetSchema
from tests.support.compact_model import Counted
from tests.support.fragments import change, load_record, record, statement
from tests.support.memory_target import MemoryTarget
from tests.unit.applier.test_core import LOG_ID, Rig, history, ids, insert, log, table

NAME = TableName("shop", "orders")
DEFINITION = [statement("CREATE DATABASE IF NOT EXISTS `shop`", ""), statement("CREATE TABLE `orders` (id INT)")]


def edge(seqno: int, part: Part, changes: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
    return load_record(seqno, changes or [], part=part, **{"shard": UNKNOWN_SHARD, **fields})


def bare(action: str, *values: str) -> dict[str, Any]:
    """Rows of a table without a key."""
    return change(action, [(None, [1, one]) for one in values], key=())


def events(*targets: str) -> list[dict[str, Any]]:
    return [
        record(0, [insert(1)]),
        edge(1, Part.BEGIN, DEFINITION, targets=targets),
        record(2, [insert(2)], last_barrier=1),
        load_record(3, [insert(5) | {"action": "read", "table": "items"}], targets=targets, last_barrier=1),
        record(4, [insert(3)], last_barrier=1),
        edge(5, Part.END, last_barrier=1, targets=targets),
        record(6, [insert(4)], last_barrier=5),
    ]


class Upserts(MemoryTarget):
    """Takes a load's rows as inserts."""

    def stage(self, changes: Any, *, last: bool) -> None:
        for net in changes:
            net.inserts, net.updates = (
                (net.updates, net.inserts) if not len(net.inserts) else (net.inserts, net.updates)
            )
        super().stage(changes, last=last)


def test_edges_of_a_load_are_commits_of_their_own_and_its_rows_are_not() -> None:
    target = Upserts()
    rig = Rig(target, history([0], 6))
    rig.accept(table(log(*events())))
    assert target.log == [
        *("stage", "commit 0", "load begin shop.orders", "commit 1", "stage", "commit 4"),
        *("load end shop.orders", "commit 5", "stage", "commit 6"),
    ]
    assert (ids(target), ids(target, "shop.items")) == ({1, 2, 3, 4}, {5})
    begin, end = target.loads
    assert (begin.seqno, [one.sql for one in begin.statements]) == (1, [one["sql"] for one in DEFINITION])
    assert (end.seqno, end.statements) == (5, ())


def test_definition_in_several_fragments_is_one_beginning() -> None:
    target = MemoryTarget()
    first, second = DEFINITION
    Rig(target, history([0], 0)).accept(
        table(
            log(
                edge(0, Part.BEGIN, [first], last_frag=False, prev_seqno=-1),
                edge(0, Part.BEGIN, [second], fragno=1, prev_seqno=-1),
            )
        )
    )
    assert target.log == ["load begin shop.orders", "commit 0"]
    assert [one.sql for one in target.loads[0].statements] == [first["sql"], second["sql"]]


def test_rows_of_a_table_without_a_key_are_staged_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 1)
    target = MemoryTarget()
    target.tables["shop.orders"] = Counted([(9, "old")])
    rig = Rig(target, history([0], 1))
    parts = [
        edge(1, Part.WHOLE, [bare("read", "a", "b")], last_frag=False),
        edge(1, Part.WHOLE, [bare("read", "c")], fragno=1, rows=3),
    ]
    for number, one in enumerate(log(record(0), *parts)):
        rig.accept(table([one], offset=number))
    assert target.log == ["commit 0", "load whole shop.orders", "part", "stage", "commit 1"]
    assert sorted(target.tables["shop.orders"].rows) == [(1, "a"), (1, "b"), (1, "c")]


def test_void_rows_of_a_table_without_a_key_leave_the_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 1)
    target = MemoryTarget()
    target.tables["shop.orders"] = Counted([(9, "old")])
    rig = Rig(target, history([0], 0))
    parts = [
        edge(0, Part.WHOLE, [bare("read", "a")], last_frag=False),
        edge(0, Part.WHOLE, fragno=1, rows=1, outcome="void"),
    ]
    for number, one in enumerate(log(*parts)):
        rig.accept(table([one], offset=number))
    assert target.log == ["load whole shop.orders", "part", "discard", "commit 0"]
    assert sorted(target.tables["shop.orders"].rows) == [(9, "old")]


def test_refused_edge_is_not_to_be_skipped() -> None:
    target = MemoryTarget()
    target.failing["load begin shop.orders"] = TargetDiffers("other columns", hint="exclude it")
    with pytest.raises(TargetDiffers) as stopped:
        Rig(target, history([0], 0)).accept(table(log(edge(0, Part.BEGIN, DEFINITION))))
    assert stopped.value.hint == "exclude it"
    assert stopped.value.where["seqno"] == 0


@pytest.mark.parametrize("metadata", [{}, {"load": "l1", "load_part": "middle", "load_table": '["shop","orders"]'}])
def test_edge_without_its_metadata_is_damage(metadata: dict[str, str]) -> None:
    broken = edge(0, Part.BEGIN, DEFINITION) | {"metadata": metadata, "last_frag": False}
    rig = Rig(MemoryTarget(), history([0], 0))
    with pytest.raises(LogDamaged, match="not the metadata of an event of a load"):
        rig.accept(table(log(broken)))


@pytest.mark.parametrize("part", [Part.BEGIN, Part.WHOLE, Part.END])
def test_skipped_edge_is_refused(part: Part) -> None:
    rig = Rig(MemoryTarget(), history([0], 0), skips=Skips([Seqno(0)], "me@here", "why"))
    with pytest.raises(ConfigError, match="cannot be skipped") as refused:
        rig.accept(table(log(edge(0, part))))
    assert "--exclude-table" in refused.value.hint


def test_skipped_rows_of_a_load_leave_their_table_inconsistent() -> None:
    target = Upserts()
    rig = Rig(target, history([0], 6), skips=Skips([Seqno(3)], "me@here", "why"))
    rig.accept(table(log(*events())))
    assert [(one.seqno, [str(name) for name in one.tables]) for one in target.left_out] == [(3, ["shop.items"])]
    assert ids(target) == {1, 2, 3, 4}


def repair(seqno: int, last_barrier: int = -1, **fields: Any) -> list[dict[str, Any]]:
    """The fragments of a repair: rows, then deletes of the key alone."""
    gone = change("delete", [([1], None)], before_present=b"\1")
    return [
        edge(
            seqno, Part.REPAIR, [insert(5) | {"action": "read"}], last_frag=False, last_barrier=last_barrier, **fields
        ),
        edge(seqno, Part.REPAIR, [gone], fragno=1, rows=2, last_barrier=last_barrier, **fields),
    ]


def test_repair_is_a_commit_of_its_own_that_its_rows_follow() -> None:
    target = Upserts()
    stream = [record(0, [insert(1)]), *repair(1), record(2, [insert(2)], last_barrier=1)]
    Rig(target, history([0], 2)).accept(table(log(*stream)))
    assert target.log == [
        *("stage", "commit 0", "load repair shop.orders", "stage", "commit 1", "stage", "commit 2"),
    ]
    assert ids(target) == {2, 5}


def test_repair_precedes_rows_that_are_staged_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 1)
    target = Upserts()
    rig = Rig(target, history([0], 1))
    for number, one in enumerate(log(record(0, [insert(1)]), *repair(1))):
        rig.accept(table([one], offset=number))
    assert target.log == ["stage", "commit 0", "load repair shop.orders", "part", "stage", "commit 1"]
    assert ids(target) == {5}


def test_skipped_repair_leaves_its_table_inconsistent() -> None:
    target = Upserts()
    Rig(target, history([0], 0), skips=Skips([Seqno(0)], "me@here", "why")).accept(table(log(*repair(0))))
    assert [(one.seqno, [str(name) for name in one.tables]) for one in target.left_out] == [(0, ["shop.orders"])]
    assert "load repair shop.orders" not in target.log


@pytest.mark.parametrize("seqno", [1, 3, 5])
def test_apply_stops_at_an_event_of_a_load(seqno: int) -> None:
    target = Upserts()
    Rig(target, history([0], 6), until=ToSeqno(Seqno(seqno))).accept(table(log(*events())))
    assert target.position is not None
    assert target.position.seqno == seqno


@pytest.mark.parametrize("command", SecondPass)
@pytest.mark.parametrize("last", [2, 3, 5])
def test_events_of_a_load_are_neither_applied_again_nor_undone(last: int, command: SecondPass) -> None:
    position = TargetPosition(service="shop", log_id=LOG_ID, seqno=Seqno(0), epoch=Epoch(1), offsets={0: 2})
    sequencer = EventSequencer[Message, Messages](
        topic="thl.shop", partitions=1, position=position, history=history([0], 6)
    )
    check = ReplayCheck("thl.shop", sequencer, position, Seqno(last), TargetSchema(), command=command)
    with pytest.raises(Unsupported, match=f"a load of a table cannot be {command.value}") as refused:
        check.accept(pa.Table.from_batches(table(log(*events())[2:], offset=2)))
    assert refused.value.where["seqno"] == 1


class RigOfTasks(Rig):
    tasks = True


@pytest.mark.parametrize("rig", [Rig, RigOfTasks])
@pytest.mark.parametrize("target_id", ["", "shelf"])
def test_load_for_other_targets_moves_the_position_alone(rig: type[Rig], target_id: str) -> None:
    target = Upserts()
    rig(target, history([0], 6), target_id=target_id).accept(table(log(*events("lake", "pond"))))
    assert target.loads == []
    assert (ids(target), "shop.items" in target.tables) == ({1, 2, 3, 4}, False)
    assert target.position is not None
    assert target.position.seqno == 6
    assert [event.seqno for event in target.events] == [*range(7)]


@pytest.mark.parametrize("rig", [Rig, RigOfTasks])
def test_load_for_some_targets_is_applied_by_each_of_them(rig: type[Rig]) -> None:
    target = Upserts()
    rig(target, history([0], 6), target_id="pond").accept(table(log(*events("lake", "pond"))))
    assert [ddl.seqno for ddl in target.loads] == [1, 5]
    assert (ids(target), ids(target, "shop.items")) == ({1, 2, 3, 4}, {5})


@pytest.mark.parametrize("made", [Rig, RigOfTasks])
def test_rows_without_a_key_for_other_targets_are_passed_over_part_by_part(
    made: type[Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 1)
    target = MemoryTarget()
    target.tables["shop.orders"] = Counted([(9, "old")])
    rig = made(target, history([0], 1), target_id="shelf")
    parts = [
        edge(1, Part.WHOLE, [bare("read", "a", "b")], last_frag=False, targets=("lake",)),
        edge(1, Part.WHOLE, [bare("read", "c")], fragno=1, rows=3, targets=("lake",)),
    ]
    for number, one in enumerate(log(record(0), *parts)):
        rig.accept(table([one], offset=number))
    assert target.log == ["commit 0", "commit 1"]
    assert sorted(target.tables["shop.orders"].rows) == [(9, "old")]


@pytest.mark.parametrize(
    ("schema", "stays"),
    [
        (TargetSchema(excluded={NAME: Excluded(since=Seqno(0), at=0, by="", reason="")}), "excluded"),
        (TargetSchema(loading={NAME: Loading(load="l0", since=Seqno(0), at=0, state=LoadContent.NEW)}), "not whole"),
        (TargetSchema(), ""),
    ],
)
def test_table_that_a_load_for_other_targets_leaves_as_it_is_is_logged(
    schema: TargetSchema, stays: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Knowing(Upserts):
        target_schema = schema

    Rig(Knowing(), history([0], 6), target_id="shelf").accept(table(log(*events("lake"))))
    said = [one.message for one in caplog.records if "a load for other targets begins" in one.message]
    assert said == ([f"a load for other targets begins: here the table stays {stays}"] if stays else [])


@pytest.mark.parametrize("rig", [Rig, RigOfTasks])
@pytest.mark.parametrize(("target_id", "tables"), [("lake", ["shop.items"]), ("shelf", [])])
def test_skipped_rows_of_a_load_for_some_targets_leave_no_table_of_others_inconsistent(
    rig: type[Rig], target_id: str, tables: list[str]
) -> None:
    target = Upserts()
    skips = Skips([Seqno(3)], "me@here", "why")
    rig(target, history([0], 6), skips=skips, target_id=target_id).accept(table(log(*events("lake"))))
    assert [(one.seqno, [str(name) for name in one.tables]) for one in target.left_out] == [(3, tables)]


@pytest.mark.parametrize("rig", [Rig, RigOfTasks])
def test_repair_for_other_targets_is_no_commit_of_its_own(rig: type[Rig]) -> None:
    target = Upserts()
    stream = [record(0, [insert(1)]), *repair(1), record(2, [insert(2)], last_barrier=1)]
    for one in stream[1:3]:
        one["metadata"] |= {"load_targets": "lake"}
    rig(target, history([0], 2), target_id="shelf").accept(table(log(*stream)))
    assert [one for one in target.log if "load" in one] == []
    assert ids(target) == {1, 2}
    assert target.position is not None
    assert target.position.seqno == 2
