"""The apply core: after each commit the target equals the state of the log at that seqno."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from connector import metrics
from connector.applier import open_commit
from connector.applier.core import ApplyCore
from connector.applier.opening import open_core
from connector.applier.partition_buffers import PartitionBuffers
from connector.applier.quarantine import Quarantine
from connector.applier.skips import Skips
from connector.applier.stop_condition import StopCondition, ToSeqno
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.errors import LogDamaged, TargetDiffers, Unsupported
from connector.kafka.handshake import Agreement
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.net_changes import NetChanges
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment, Unread
from connector.log.epochs.control import ControlState, EpochRecord, LogRecord
from connector.log.epochs.history import History
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.layout import TableName
from connector.relay.folder import Owner
from connector.relay.spool import RecordSpool
from connector.relay.writer import RelayWriter
from connector.spark.stream import segment_builder
from connector.spark.stream.foreign_loads import ForeignLoads
from connector.spark.stream.parts import Part, begin_of, end_of
from connector.spark.stream.segment_builder import SegmentBuilder
from connector.spark.stream.task_result import deserialized, serialized
from connector.targets.histories import history_table
from connector.targets.target import TargetDatabase
from connector.targets.target_schema import TargetSchema
from tests.support.compact_model import Keyed
from tests.support.fragments import batch, change, encoded, in_parts, marker, record, statement
from tests.support.memory_target import MemoryTarget

LOG_ID = LogId("f" * 32)
TOPIC = "thl.shop"
UUID = "6f1c9a52-0000-11ee-8c99-0242ac120002"


def table(values: Sequence[bytes | None], *, offset: int = 0, partition: int = 0) -> list[pa.RecordBatch]:
    return [batch(values, offset=offset, partition=partition)]


def history(firsts: Iterable[int], last_finished: int, gtid_set: str | None = "") -> History:
    epochs = tuple(
        EpochRecord(
            epoch=Epoch(number),
            first_seqno=Seqno(first),
            source_id="db:3306",
            server_uuid=UUID,
            started=0,
            reason="online",
            gtid_set=gtid_set,
        )
        for number, first in enumerate(firsts, 1)
    )
    return History.of(ControlState(LogRecord(LOG_ID, 0), None, epochs), Seqno(last_finished))


class LargeMessages:
    """Large messages by their offsets."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self.values = values

    def fetch(self, partition: int, offset: int) -> pa.RecordBatch:
        return batch([self.values[offset]], partition=partition, offset=offset)

    def rest(self) -> None:
        """Nothing is held."""


class Ranges:
    """What was read, by partition and offset."""

    def __init__(self) -> None:
        self.values: dict[tuple[int, int], bytes] = {}
        self.large: list[bool] = []

    def batches(self, partition: int, begin: int, end: int, *, large: bool = False) -> Generator[pa.RecordBatch]:
        self.large.append(large)
        for offset in range(begin, end):
            if (value := self.values.get((partition, offset))) is not None:
                yield batch([value], partition=partition, offset=offset)


class Rig:
    """A core on a target, from the target's position on."""

    tasks = False  # what is read goes through a task, which compacts it

    def __init__(
        self,
        target: TargetDatabase,
        known: History,
        *,
        until: StopCondition | None = None,
        partitions: int = 1,
        skips: Skips | None = None,
        large: Sequence[bytes] = (),
        columns: MetadataColumns | None = None,
        history: HistoryTables | None = None,
        relay: RelayWriter | None = None,
        quarantine: Quarantine | None = None,
        target_id: str = "",
        statements: bool = False,
    ) -> None:
        position = target.claim("shop")
        gtid_set = known.epochs[0].gtid_set if position.seqno == NO_SEQNO else position.gtid_set
        if relay is not None:
            relay.begin(position, known, gtid_set, Owner(target.token, target.identity))
        self._builder = partial(
            SegmentBuilder,
            TOPIC,
            0,
            columns,
            history=history,
            events=True,
            target=target_id,
            others=ForeignLoads(target_id) if relay is None else None,
        )
        self._spools = Path(tempfile.mkdtemp()) if relay is not None else None
        self._by_tasks = self.tasks and partitions == 1 and not large
        self._ranges = Ranges()
        self._begun = False
        self.core = ApplyCore(
            target,
            position,
            EventSequencer[Message, Messages | Segment](
                topic=TOPIC, partitions=partitions, position=position, history=known
            ),
            PartitionBuffers(TOPIC, LargeMessages(large), self._ranges, target_id, executes_statements=statements),
            log_id=known.log_id,
            gtid_set=gtid_set,
            topic=TOPIC,
            clock=SystemClock(),
            until=until,
            skips=skips,
            columns=columns,
            history=history,
            relay=relay,
            quarantine=quarantine,
        )

    def accept(self, batches: Sequence[pa.RecordBatch]) -> None:
        """What Spark returns of these messages."""
        self.core.accept(chain.from_iterable(map(self._parts, batches)) if self._by_tasks else batches)

    def _parts(self, messages: pa.RecordBatch) -> list[Part]:
        for offset, value in zip(messages["offset"], messages["value"], strict=True):
            self._ranges.values[0, offset.as_py()] = value.as_py()
        begun, self._begun = self._begun, True
        with nullcontext() if self._spools is None else RecordSpool(self._spools) as records:
            builder = self._builder(records=records)
            try:
                builder.add(messages, alone=not begun)
            except LogDamaged:
                return [Unread(0, begin_of(messages), end_of(messages), messages.num_rows, messages.nbytes)]
            result = b"".join(serialized(builder.finish()))
        return list(deserialized(pa.py_buffer(result)))


def insert(*ids: int, table: str = "orders") -> dict[str, Any]:
    return change("insert", [(None, [n, str(n)]) for n in ids], table=table)


def ids(target: MemoryTarget, name: str = "shop.orders") -> set[Any]:
    found = target.tables.get(name)
    return {key[0] for key in found.rows} if isinstance(found, Keyed) else set()


def log(*records: dict[str, Any]) -> list[bytes]:
    """The log's beginning: the first epoch's marker, then these."""
    return [encoded(one) for one in (marker(1, 0, -1, log_id=LOG_ID), *records)]


def test_events_of_a_batch_are_one_commit() -> None:
    target = MemoryTarget()
    rig = Rig(target, history([0], 2))
    rig.accept(table(log(record(0, [insert(1)]), record(1, [insert(2), insert(7, table="items")]), record(2))))
    assert target.log == ["stage", "commit 2"]
    assert (ids(target), ids(target, "shop.items")) == ({1, 2}, {7})
    assert target.position is not None
    assert target.position.offsets == {0: 4}
    assert (target.position.log_id, target.position.epoch, target.position.source_id) == (LOG_ID, 1, "db:3306")
    assert target.position.gtid_set == f"{UUID}:1-3"
    assert target.position.consistent
    assert [event.rows for event in target.events] == [1, 2, 0]


@pytest.mark.parametrize(("events", "seqno", "skip"), [(3, "0..2", "--skip-seqno N"), (1, 0, "--skip-seqno 0")])
def test_refusal_of_target_names_service_events_and_skip_option(events: int, seqno: object, skip: str) -> None:
    target = MemoryTarget()
    rig = Rig(target, history([0], events - 1))
    target.failing["before commit"] = TargetDiffers("a row is missing", rows="id=9")
    with pytest.raises(TargetDiffers) as raised:
        rig.accept(table(log(*(record(seqno, [insert(seqno)]) for seqno in range(events)))))
    assert raised.value.where == {"service": "shop", "seqno": seqno, "rows": "id=9"}
    assert skip in raised.value.hint


def test_refusal_of_a_history_is_one_of_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    target = MemoryTarget()
    orders = TableName("shop", "orders")
    made = history_table(orders)
    monkeypatch.setattr(MemoryTarget, "target_schema", TargetSchema([made]))
    rig = Rig(target, history([0], 0))
    error = TargetDiffers("a row exists")
    error.tables = (made.name, orders)
    target.failing["before commit"] = error
    with pytest.raises(TargetDiffers) as raised:
        rig.accept(table(log(record(0, [insert(0)]))))
    assert raised.value.tables == (orders,)


def test_core_on_kafka_keeps_the_changes_of_tables_with_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(service="shop", target=Target(history=("shop.orders",)))
    target, staged = MemoryTarget(), list[NetChanges]()
    monkeypatch.setattr(target, "stage", lambda changes, **_: staged.extend(changes))
    agreed = Agreement(history([0], 0), 1, {}, None)
    core = open_core(
        config, target, target.claim("shop"), agreed, large=LargeMessages([]), ranges=Ranges(), clock=SystemClock()
    )
    core.accept(table(log(record(0, [insert(1), insert(2, table="items")]))))
    assert {str(net.layout.name) for net in staged} == {"shop.orders", "shop.items", "shop__history.orders"}


def test_the_position_metric_is_set_before_the_first_commit() -> None:
    target = MemoryTarget()
    Rig(target, history([0], 1)).accept(table(log(record(0, [insert(1)]), record(1, [insert(2)]))))
    metrics.applied_seqno.labels("shop").set(0)  # as a process finds it that begins
    Rig(target, history([0], 1))
    assert REGISTRY.get_sample_value("thl_applied_seqno", {"service": "shop"}) == 1


@pytest.mark.parametrize("stage_bytes", [1, 1 << 20])
def test_rows_and_bytes_of_committed_events_are_counted_by_table(
    monkeypatch: pytest.MonkeyPatch, stage_bytes: int
) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", stage_bytes)
    monkeypatch.setattr(metrics, "_served", metrics._Served(tables=100))

    def counted(what: str, table: str) -> float:
        labels = {"service": "shop", "schema": "shop", "table": table}
        return REGISTRY.get_sample_value(f"thl_applied_table_{what}_total", labels) or 0.0

    before = {one: counted("rows", one) for one in ("orders", "items")}
    size = counted("bytes", "orders")
    rig = Rig(MemoryTarget(), history([0], 0))
    rig.accept(table(log(record(0, [insert(1, 2), insert(3, table="items")]), record(1, [insert(4)], last_frag=False))))
    again = [marker(2, 1, 0, log_id=LOG_ID), record(1, [insert(4)], epoch=2)]  # the first attempt does not count
    rig.accept(table([encoded(one) for one in again], offset=3))
    assert {one: counted("rows", one) - before[one] for one in before} == {"orders": 3, "items": 1}
    assert counted("bytes", "orders") > size


def test_an_applier_that_begins_again_names_no_more_tables_than_the_process_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "_served", metrics._Served(tables=1))
    counts = metrics.TableCounts(metrics.applied_table_rows, metrics.applied_table_bytes)
    monkeypatch.setattr(metrics, "applied_tables", counts)

    def counted(schema: str, table: str) -> float:
        labels = {"service": "shop", "schema": schema, "table": table}
        return REGISTRY.get_sample_value("thl_applied_table_rows_total", labels) or 0.0

    names = [("shop", "first"), ("shop", "second"), ("", "")]
    before = [counted(*one) for one in names]
    for name in ("first", "second"):
        Rig(MemoryTarget(), history([0], 0)).accept(table(log(record(0, [insert(1, table=name)]))))
    assert [counted(*one) - was for one, was in zip(names, before, strict=True)] == [1, 0, 1]


def test_an_unfinished_event_is_invisible_and_read_again_from_its_first_fragment() -> None:
    target = MemoryTarget()
    rig = Rig(target, history([0], 2))
    parts = [
        record(1, [insert(10)], last_frag=False),
        record(1, [insert(11)], last_frag=False, fragno=1, rows=2),
        record(1, [insert(12)], fragno=2, rows=3),
    ]
    values = log(record(0, [insert(1)]), *parts)
    rig.accept(table(values[:3]))
    assert ids(target) == {1}
    assert target.position is not None
    assert target.position.offsets == {0: 2}
    rig.accept(table(values[3:4], offset=3))
    assert ids(target) == {1}
    rig.accept(table([*values[4:], encoded(record(2, [insert(13)]))], offset=4))
    assert ids(target) == {1, 10, 11, 12, 13}
    assert target.log == ["stage", "commit 0", "stage", "commit 2"]


def test_a_large_unfinished_event_goes_to_the_staging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 1)
    target = MemoryTarget()
    rig = Rig(target, history([0], 1))
    parts = [record(0, [insert(n)], last_frag=n == 3, fragno=n, rows=n + 1) for n in range(4)]
    values = log(*parts, record(1, [insert(9)]))
    for at, value in enumerate(values):
        rig.accept(table([value], offset=at))
    assert target.log == ["part", "part", "part", "stage", "commit 0", "stage", "commit 1"]
    assert ids(target) == {0, 1, 2, 3, 9}


@pytest.mark.parametrize("stage_bytes", [1, 1 << 20])
def test_fragments_of_an_event_that_is_given_up_are_dropped(monkeypatch: pytest.MonkeyPatch, stage_bytes: int) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", stage_bytes)
    target = MemoryTarget()
    rig = Rig(target, history([0], 0))
    rig.accept(table(log(record(0, [insert(1)]), record(1, [insert(2)], last_frag=False))))
    again = [marker(2, 1, 0, log_id=LOG_ID), record(1, [insert(2), insert(3)], epoch=2)]
    rig.accept(table([encoded(one) for one in again], offset=3))
    assert ids(target) == {1, 2, 3}
    assert ("discard" in target.log) == (stage_bytes == 1)
    assert target.position is not None
    assert target.position.epoch == 2


def test_a_void_event_changes_only_the_seqno() -> None:
    target = MemoryTarget()
    Rig(target, history([0], 1)).accept(table(log(record(0, [insert(1)], outcome="void"), record(1, [insert(1)]))))
    assert ids(target) == {1}
    assert target.log[-1] == "commit 1"


def test_ddl_is_committed_alone() -> None:
    target = MemoryTarget()
    ddl = record(1, [statement("CREATE TABLE t (i INT)"), statement("SET x = 1")], kind="ddl", shard="#UNKNOWN")
    after = record(2, [insert(2)], last_barrier=1)
    Rig(target, history([0], 2)).accept(table(log(record(0, [insert(1)]), ddl, after)))
    assert target.log == ["stage", "commit 0", "ddl", "commit 1", "stage", "commit 2"]
    assert target.statements == ["CREATE TABLE t (i INT)", "SET x = 1"]


def test_a_statement_in_parts_is_applied_whole() -> None:
    target = MemoryTarget()
    one = {"kind": "ddl", "shard": "#UNKNOWN"}
    *some, last = in_parts(statement("CREATE TABLE t (i INT)"), 3)
    parts = [record(0, [part], last_frag=False, fragno=n, **one) for n, part in enumerate(some)]
    Rig(target, history([0], 0)).accept(table(log(*parts, record(0, [last], fragno=2, **one))))
    assert (target.statements, target.log) == (["CREATE TABLE t (i INT)"], ["ddl", "commit 0"])


def test_a_ddl_of_several_fragments_is_applied_once() -> None:
    target = MemoryTarget()
    rig = Rig(target, history([0], 0))
    one = {"kind": "ddl", "shard": "#UNKNOWN"}
    rig.accept(table(log(record(0, [statement("A")], last_frag=False, **one))))
    assert target.log == []
    rig.accept(table([encoded(record(0, [statement("B")], fragno=1, **one))], offset=2))
    assert (target.statements, target.log) == (["A", "B"], ["ddl", "commit 0"])


def test_rows_of_a_ddl_event_follow_its_statements_in_one_commit() -> None:
    target = MemoryTarget()
    one = {"kind": "ddl", "shard": "#UNKNOWN"}
    whole = record(0, [statement("CREATE TABLE t …"), insert(1)], **one)
    Rig(target, history([0], 0)).accept(table(log(whole)))
    assert (target.statements, target.log) == (["CREATE TABLE t …"], ["ddl", "stage", "commit 0"])


def test_a_statement_in_a_row_event_is_refused() -> None:
    with pytest.raises(Unsupported):
        Rig(MemoryTarget(), history([0], 0)).accept(table(log(record(0, [statement("DELETE FROM t")]))))


def test_an_initial_load_is_inconsistent_until_its_end() -> None:
    target = MemoryTarget()
    whole = {"shard": "#UNKNOWN", "gtid": None}
    records = [
        record(0, metadata={"snapshot": "begin"}, **whole),
        record(
            1, [statement("CREATE TABLE orders …")], kind="ddl", metadata={"snapshot": "table"}, last_barrier=0, **whole
        ),
        record(2, [insert(1, 2)], metadata={"snapshot": "rows"}, last_barrier=1, gtid=None),
        record(3, metadata={"snapshot": "end", "gtid_set": f"{UUID}:1-100"}, last_barrier=1, **whole),
        record(4, [insert(3)], gtid=f"{UUID}:101", last_barrier=3),
    ]
    rig = Rig(target, history([0], 4))
    consistent, gtids = [], []
    for at, value in enumerate(log(*records)):
        rig.accept(table([value], offset=at))
        if target.position is not None:
            consistent.append(target.position.consistent)
            gtids.append(target.position.gtid_set)
    assert consistent == [False, False, False, True, True]
    assert gtids == ["", "", "", f"{UUID}:1-100", f"{UUID}:1-101"]
    assert target.log[:2] == ["begin_snapshot", "commit 0"]


def test_a_restarted_initial_load_replaces_the_first_one() -> None:
    target = MemoryTarget()
    begin = {"metadata": {"snapshot": "begin"}, "shard": "#UNKNOWN"}
    records = [record(0, **begin), record(1, [insert(1)], last_barrier=0), record(2, last_barrier=0, **begin)]
    Rig(target, history([0], 2)).accept(table(log(*records)))
    assert target.log == ["begin_snapshot", "commit 0", "stage", "commit 1", "begin_snapshot", "commit 2"]
    assert ids(target) == set()


def test_a_source_without_gtids_has_no_gtid_set() -> None:
    target = MemoryTarget()
    Rig(target, history([0], 0, gtid_set=None)).accept(table(log(record(0, [insert(1)], gtid="0-1-7"))))
    assert target.position is not None
    assert target.position.gtid_set is None


def test_a_wrong_row_count_in_a_header_is_damage() -> None:
    with pytest.raises(LogDamaged) as raised:
        Rig(MemoryTarget(), history([0], 0)).accept(table(log(record(0, [insert(1, 2, 3)], rows=4))))
    assert raised.value.where["seqno"] == 0


def test_a_commit_is_bounded_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_commit, "COMMIT_ROWS", 2)
    monkeypatch.setattr(segment_builder, "COMMIT_ROWS", 2)
    target = MemoryTarget()
    Rig(target, history([0], 4)).accept(table(log(*(record(n, [insert(n)]) for n in range(5)))))
    # The first event of a stream is a message, the next two are a segment.
    expected = ["commit 2", "commit 4"] if Rig.tasks else ["commit 1", "commit 3", "commit 4"]
    assert [one for one in target.log if one != "stage"] == expected


def test_no_event_after_the_stop_condition_is_applied() -> None:
    target = MemoryTarget()
    rig = Rig(target, history([0], 4), until=ToSeqno(Seqno(2)))
    rig.accept(table(log(*(record(n, [insert(n)]) for n in range(2)))))
    assert not rig.core.done
    rig.accept(table([encoded(record(n, [insert(n)])) for n in range(2, 5)], offset=3))
    assert rig.core.done
    assert ids(target) == {0, 1, 2}


def test_parts_of_a_batch_in_any_order_are_applied_in_the_log_s() -> None:
    target = MemoryTarget()
    values = log(*(record(n, [insert(n)]) for n in range(5)))
    late, early = batch(values[3:], offset=3), batch(values[:3])
    Rig(target, history([0], 4)).accept([late, early])
    assert target.log == ["stage", "commit 4"]


@pytest.mark.parametrize("large", [{1}, {0, 5}, {2, 3}, set(range(6))])
def test_null_values_are_fetched_in_their_turn(large: set[int]) -> None:
    target = MemoryTarget()
    values = log(*(record(n, [insert(n)]) for n in range(5)))
    rig = Rig(target, history([0], 4), large=values)
    rig.accept(table([None if n in large else value for n, value in enumerate(values)]))
    assert ids(target) == set(range(5))
    assert [event.seqno for event in target.events] == list(range(5))


def test_an_event_waits_for_an_earlier_one_of_another_partition() -> None:
    target = MemoryTarget()
    rig = Rig(target, history([0], 1), partitions=2)
    begin = encoded(marker(1, 0, -1, log_id=LOG_ID))
    rig.accept(table([begin, encoded(record(1, [insert(2)], prev_seqno=-1))], partition=1))
    assert target.log == []
    rig.accept(table([begin, encoded(record(0, [insert(1)]))]))
    assert target.log == ["stage", "commit 1"]
    assert target.position is not None
    assert target.position.offsets == {0: 2, 1: 2}


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[bytes], list[int], list[dict[int, int]]]:
    """A log of one partition: events in fragments, changes in parts, some given up; the table after each seqno."""
    values = log()
    firsts, states, rows = [0], [], dict[int, int]()
    epoch = 1
    for seqno in range(draw(st.integers(1, 8))):
        steps = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=6))
        changes, after = [], dict(rows)
        for key, value in steps:
            before = None if key not in after else [key, after[key]]
            if before is not None and value == 9:
                changes.append(change("delete", [(before, None)]))
                del after[key]
            else:
                changes.append(change("insert" if before is None else "update", [(before, [key, value])]))
                after[key] = value
        cuts = sorted(draw(st.sets(st.integers(1, max(1, len(changes) - 1)), max_size=2))) if len(changes) > 1 else []
        groups: list[tuple[list[dict[str, Any]], int]] = []  # what a fragment has, and the rows with it
        for first, end in pairwise([0, *cuts, len(changes)]):
            parts = draw(st.integers(1, 3)) if end - first == 1 else 1
            if parts > 1:
                *some, last = in_parts(changes[first], parts)
                groups += [*(([part], first) for part in some), ([last], end)]
            else:
                groups.append((changes[first:end], end))
        given_up = draw(st.integers(0, 3)) == 0
        for attempt in range(1 + given_up):
            pieces = len(groups) if not (given_up and attempt == 0) else draw(st.integers(0, len(groups) - 1))
            for fragno, (group, rows_so_far) in enumerate(groups[:pieces]):
                values.append(
                    encoded(
                        record(
                            seqno,
                            group,
                            fragno=fragno,
                            rows=rows_so_far,
                            last_frag=fragno == len(groups) - 1,
                            epoch=epoch,
                        )
                    )
                )
            if given_up and attempt == 0:
                epoch += 1
                firsts.append(seqno)
                values.append(encoded(marker(epoch, seqno, seqno - 1, log_id=LOG_ID)))
        rows = after
        states.append(dict(rows))
    return values, firsts, states


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.large_base_example])
@given(histories(), st.data())
def test_any_batches_and_crashes_leave_the_state_of_the_log_at_the_target_s_seqno(
    made: tuple[list[bytes], list[int], list[dict[int, int]]], data: st.DataObject
) -> None:
    values, firsts, states = made
    known = history(firsts, len(states) - 1)
    target = MemoryTarget()
    open_commit.STAGE_BYTES, kept = data.draw(st.sampled_from([1, 1 << 20])), open_commit.STAGE_BYTES  # type: ignore[misc]
    try:
        # At the start the newer epochs may be known already, or are learnt from their markers.
        rig, at = Rig(target, data.draw(st.sampled_from([known, history([0], len(states) - 1)]))), 0
        while at < len(values):
            step = data.draw(st.integers(1, 4))
            rig.accept(table(values[at : at + step], offset=at))
            at += step
            if target.position is not None:
                found = target.tables.get("shop.orders", Keyed([0])).rows
                assert {row[0]: row[1] for row in found.values()} == states[target.position.seqno]
            if data.draw(st.integers(0, 3)) == 0:
                rig = Rig(target, known)
                at = target.position.offsets[0] if target.position else 0
    finally:
        open_commit.STAGE_BYTES = kept  # type: ignore[misc]
    assert target.position is not None
    assert target.position.seqno == len(states) - 1
    assert Counter(event.seqno for event in target.events) == Counter(range(len(states)))


def test_a_commit_ends_with_the_event_of_its_last_allowed_table() -> None:
    """A target locks objects for each table of a commit: a source may have a schema for each tenant."""
    values = [encoded(record(n, [insert(n) | {"table": f"t{n}"}])) for n in range(900)]
    target = MemoryTarget()
    Rig(target, history([0], 899)).accept(table(values))
    commits = [int(entry.removeprefix("commit ")) for entry in target.log if entry.startswith("commit")]
    assert [end - begin for begin, end in pairwise([-1, *commits])] in ([400, 400, 100], [401, 400, 99])
