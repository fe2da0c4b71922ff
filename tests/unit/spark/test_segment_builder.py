"""What lies whole in a task's range becomes segments that the core accepts; all else stays messages, none is lost."""

from __future__ import annotations

from array import array
from collections.abc import Generator, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connector.applier import open_commit
from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.applier.partition_buffers import Ranges as RangesProtocol
from connector.clock import SystemClock
from connector.errors import LogDamaged
from connector.kafka.large_messages import LARGE
from connector.kafka.message_batch import message_batch
from connector.log.compact.history import history_tables
from connector.log.compact.metadata_columns import MetadataColumns, metadata_columns
from connector.log.compact.net_changes import AppliedEvent, NetChanges
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment, Unread
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO, UNKNOWN_SHARD
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.rules import Rule
from connector.log.transaction.load import Part as LoadPart
from connector.relay.spool import RecordSpool
from connector.spark.stream import segment_builder
from connector.spark.stream.foreign_loads import ForeignLoads
from connector.spark.stream.parts import Part, begin_of, end_of
from connector.spark.stream.segment_builder import SegmentBuilder
from connector.targets.default_values import with_whole_inserts
from connector.targets.table import make_table
from tests.support.broken_rules import breaks
from tests.support.compact_model import Counted, Partly, decoded
from tests.support.fragments import batch, change, encoded, in_parts, load_record, marker, record, scanned, statement
from tests.support.memory_target import MemoryTarget
from tests.unit.applier.test_core import LOG_ID, TOPIC, LargeMessages, Ranges, history, insert, log
from tests.unit.log.compact.test_merge_partial import COLUMNS, DEFAULTS, KEY, histories

Record = dict[str, Any]
TOUCHED: Final = metadata_columns([("seqno", "_seqno"), ("gtid", "_gtid"), ("event_id", "_id")])


class NoRanges:
    """Nothing is read again."""

    def batches(self, partition: int, begin: int, end: int, *, large: bool = False) -> Generator[pa.RecordBatch]:
        raise AssertionError(f"offsets {begin}..{end} of partition {partition} are read again")


def built(
    records: Iterable[Record], *, offset: int = 0, alone: bool = False, events: bool = False, cut: int | None = None
) -> list[Part]:
    """What one task makes of these; `cut`: how many it gets at once."""
    values = [encoded(one) for one in records]
    builder = SegmentBuilder(TOPIC, 0, events=events)
    step = cut or len(values)
    for at in range(0, len(values), step):
        builder.add(batch(values[at : at + step], offset=offset + at), alone=alone and at == 0)
    return builder.finish()


def shape(parts: Iterable[Part]) -> list[tuple[str, int, int]]:
    """Kind and offsets of each part."""
    kinds = {Segment: "segment", Unread: "unread"}
    return [(kinds.get(type(part), "messages"), begin_of(part), end_of(part)) for part in parts]


def segments(parts: Iterable[Part]) -> list[Segment]:
    return [part for part in parts if isinstance(part, Segment)]


def joined_shape(parts: Iterable[Part]) -> list[tuple[str, int, int]]:
    """The shape of parts, messages that follow each other as one."""
    found: list[tuple[str, int, int]] = []
    for kind, begin, end in shape(parts):
        if found and found[-1][0] == kind == "messages" and found[-1][2] == begin:
            found[-1] = (kind, found[-1][1], end)
        else:
            found.append((kind, begin, end))
    return found


def core(
    target: MemoryTarget,
    ranges: RangesProtocol,
    columns: MetadataColumns | None = None,
    large: Sequence[bytes] = (),
    *,
    target_id: str = "",
) -> ApplyCore:
    position = target.claim("shop")
    known = history([0], 10_000)
    sequencer = EventSequencer[Message, Messages | Segment](topic=TOPIC, partitions=1, position=position, history=known)
    return ApplyCore(
        target,
        position,
        sequencer,
        PartitionBuffers(TOPIC, LargeMessages(large), ranges, target_id),
        log_id=known.log_id,
        gtid_set=known.epochs[0].gtid_set if position.seqno == NO_SEQNO else position.gtid_set,
        topic=TOPIC,
        clock=SystemClock(),
        columns=columns,
    )


def begun(target: MemoryTarget, large: Sequence[bytes] = (), *, target_id: str = "") -> ApplyCore:
    """A core that has the log's first event, 0, at offset 1."""
    made = core(target, NoRanges(), large=large, target_id=target_id)
    made.accept([batch(log(record(0, [insert(0)])))])
    return made


def events(count: int, first: int = 1) -> list[Record]:
    return [record(seqno, [insert(seqno)]) for seqno in range(first, first + count)]


def in_fragments(seqno: int, count: int, **fields: Any) -> list[Record]:
    """An event of one row a fragment."""
    return [
        record(seqno, [insert(100 * seqno + n)], fragno=n, rows=n + 1, last_frag=n == count - 1, **fields)
        for n in range(count)
    ]


def row_parts(seqno: int, count: int) -> list[Record]:
    """An event of one row that is cut into parts."""
    parts = in_parts(insert(seqno), count)
    return [
        record(seqno, [part], fragno=n, rows=int(n == count - 1), last_frag=n == count - 1)
        for n, part in enumerate(parts)
    ]


def applied_seqno(target: MemoryTarget) -> int:
    assert target.position is not None
    return target.position.seqno


def applied(target: MemoryTarget) -> tuple[object, ...]:
    tables = {name: table.rows for name, table in target.tables.items()}
    return tables, target.position, target.statements, target.events


@pytest.mark.parametrize("cut", [None, 1, 3])
def test_consecutive_events_are_one_segment_that_the_core_accepts_whole(cut: int | None) -> None:
    parts = built(events(7), offset=2, cut=cut, events=True)
    assert shape(parts) == [("segment", 2, 9)]
    target = MemoryTarget()
    begun(target).accept(parts)
    assert target.log == ["stage", "commit 0", "stage", "commit 7"]
    assert set(target.tables["shop.orders"].rows) == {(n,) for n in range(8)}
    assert [event.seqno for event in target.events] == list(range(8))


MIXED: Final = [*events(2), *in_fragments(3, 3), *row_parts(4, 3), *events(1, 5), *in_fragments(6, 2)]


@pytest.mark.parametrize("cut", [None, 1, 2, 4])
def test_events_of_several_fragments_and_row_parts_are_in_the_segment(cut: int | None) -> None:
    parts = built(MIXED, offset=2, cut=cut, events=True)
    assert shape(parts) == [("segment", 2, 2 + len(MIXED))]
    target = MemoryTarget()
    begun(target).accept(parts)
    assert set(target.tables["shop.orders"].rows) == {
        *((n,) for n in (0, 1, 2, 300, 301, 302, 4, 5, 600, 601)),
    }
    assert target.position is not None
    assert (target.position.seqno, target.position.offsets) == (6, {0: 2 + len(MIXED)})


DDL: Final[Record] = {"kind": "ddl", "shard": "#UNKNOWN"}


@pytest.mark.parametrize(
    ("middle", "rest"),
    [
        pytest.param([marker(2, 3, 2, log_id=LOG_ID)], {"epoch": 2, "first": 3}, id="marker"),
        pytest.param([record(3, [statement("A")], **DDL)], {"last_barrier": 3}, id="DDL"),
        pytest.param([record(3, [insert(3)], outcome="void")], {}, id="voided"),
        pytest.param(
            [record(3, [insert(3)], last_frag=False), record(3, [insert(4)], fragno=1, rows=2, outcome="void")],
            {},
            id="voided at its end",
        ),
        pytest.param([record(3, metadata={"snapshot": "begin"})], {}, id="snapshot begin"),
        pytest.param([record(3, metadata={"snapshot": "end"})], {}, id="snapshot end"),
        pytest.param([record(3, [insert(3)], fragno=1, rows=2)], {}, id="begun before"),
        pytest.param(
            [record(3, [insert(3)], last_frag=False), record(3, [insert(4)], fragno=2, rows=2)], {}, id="fragment lost"
        ),
        pytest.param(
            [record(3, [insert(3)], last_frag=False), record(3, [insert(4)], epoch=2, fragno=1, rows=2)],
            {},
            id="fragment of another epoch",
        ),
        *(
            pytest.param(
                [record(3, [insert(3)], last_frag=False), record(3, [insert(4)], fragno=1, **({"rows": 2} | wrong))],
                {},
                id=f"fragments that differ in {name}",
            )
            for name, wrong in {
                "barrier": {"last_barrier": 1},
                "predecessor": {"prev_seqno": 1},
                "rows": {"rows": 0},
            }.items()
        ),
        pytest.param([record(3, [insert(3)], last_frag=False)], {"first": 3}, id="given up without its end"),
    ],
)
@pytest.mark.parametrize("cut", [None, 1])
def test_what_is_not_a_whole_event_of_rows_stays_messages(
    middle: list[Record], rest: dict[str, Any], cut: int | None
) -> None:
    first = rest.pop("first", 4) if "first" in (rest := dict(rest)) else 4
    after = [record(first + n, [insert(50 + n)], **rest) for n in range(2)]
    parts = built([*events(2), *middle, *after], cut=cut)
    found = shape(parts)
    end = 2 + len(middle)
    assert (found[0], found[-1]) == (("segment", 0, 2), ("segment", end, end + 2))
    assert {kind for kind, _, _ in found[1:-1]} == {"messages"}
    assert [offset for _, begin, to in found for offset in range(begin, to)] == list(range(end + 2))


def test_messages_that_stay_are_those_that_were_read() -> None:
    records = [*events(1), record(2, [statement("A")], **DDL), record(3, [statement("B")], last_barrier=2, **DDL)]
    _, stayed = built(records)
    assert isinstance(stayed, pa.RecordBatch)
    assert stayed.to_pydict() == {
        "partition": [0, 0],
        "offset": [1, 2],
        "value": [encoded(one) for one in records[1:]],
    }


def test_event_unfinished_at_the_end_stays_messages() -> None:
    assert shape(built([*events(2), *in_fragments(3, 3)[:2]])) == [("segment", 0, 2), ("messages", 2, 4)]
    assert shape(built(in_fragments(3, 3)[1:])) == [("messages", 0, 2)]


def test_event_above_the_limit_stays_messages_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    event = in_fragments(3, 4)
    size = sum(message.size for message in scanned([encoded(one) for one in event[:3]]))
    monkeypatch.setattr(segment_builder, "LARGE_EVENT", size)
    records = [*events(2), *event, *events(1, 4)]
    assert shape(built(records)) == [("segment", 0, 7)]
    monkeypatch.setattr(segment_builder, "LARGE_EVENT", size - 1)
    found = built(records)
    assert shape(found)[0] == ("segment", 0, 2)
    assert shape(found)[-1] == ("segment", 6, 7)
    assert {kind for kind, _, _ in shape(found)[1:-1]} == {"messages"}
    target = MemoryTarget()
    begun(target).accept(built(records, offset=2, events=True))
    assert target.position is not None
    assert target.position.seqno == 4


@pytest.mark.parametrize("cut", [None, 1, 2])
@pytest.mark.parametrize(
    ("large", "expected"),
    [
        pytest.param({0}, [("messages", 2, 3), ("segment", 3, 13)], id="the first event"),
        pytest.param({3}, [("segment", 2, 4), ("messages", 4, 7), ("segment", 7, 13)], id="amid an event"),
        pytest.param({2}, [("segment", 2, 4), ("messages", 4, 7), ("segment", 7, 13)], id="an event's first"),
        pytest.param({4}, [("segment", 2, 4), ("messages", 4, 7), ("segment", 7, 13)], id="an event's last"),
        pytest.param({5, 6}, [("segment", 2, 7), ("messages", 7, 10), ("segment", 10, 13)], id="row parts"),
        pytest.param({9, 10}, [("segment", 2, 11), ("messages", 11, 13)], id="the last event"),
    ],
)
def test_event_with_a_large_message_stays_messages_and_the_target_gets_it_whole(
    large: set[int], expected: list[tuple[str, int, int]], cut: int | None
) -> None:
    values = [encoded(one) for one in MIXED]
    builder = SegmentBuilder(TOPIC, 0, events=True)
    for at in range(0, len(values), cut or len(values)):
        until = min(len(values), at + (cut or len(values)))
        read = [None if index in large else values[index] for index in range(at, until)]
        builder.add(message_batch([0] * len(read), range(2 + at, 2 + until), read))
    parts = builder.finish()
    assert joined_shape(parts) == expected
    assert sum(part["value"].null_count for part in parts if isinstance(part, pa.RecordBatch)) == len(large)
    whole, target = MemoryTarget(), MemoryTarget()
    begun(whole).accept(built(MIXED, offset=2, events=True))
    begun(target, large=[b"", b"", *values]).accept(parts)
    assert (target.tables["shop.orders"].rows, target.position) == (whole.tables["shop.orders"].rows, whole.position)


READ: Final = change("read", [(None, [n, "x" * 1000]) for n in range(70, 75)])


def load_for_lake(first: int, part: LoadPart, fragments: int = 1, barrier: int = -1) -> list[Record]:
    """An event of a load for the target `lake`."""
    shard = "shop" if part is LoadPart.ROWS else UNKNOWN_SHARD
    rows = [] if part is LoadPart.END else [READ]
    return [
        load_record(
            first,
            rows,
            part=part,
            targets=("lake",),
            shard=shard,
            last_barrier=barrier,
            fragno=n,
            rows=(n + 1) * 5 * len(rows),
            last_frag=n == fragments - 1,
        )
        for n in range(fragments)
    ]


LOADED: Final = [
    *events(2),
    *load_for_lake(3, LoadPart.ROWS),
    *load_for_lake(4, LoadPart.ROWS, 3),
    *events(1, 5),
    *load_for_lake(6, LoadPart.WHOLE, 4),
    *load_for_lake(7, LoadPart.END, barrier=6),
    *load_for_lake(8, LoadPart.REPAIR, 2, barrier=7),
    record(9, [insert(9)], last_barrier=8),
]


def task_of(target: str) -> tuple[SegmentBuilder, ForeignLoads]:
    others = ForeignLoads(target)
    return SegmentBuilder(TOPIC, 0, events=True, target=target, others=others), others


@pytest.mark.parametrize("cut", [None, 1, 2, 4])
@pytest.mark.parametrize("target", ["shelf", ""])
def test_load_for_other_targets_is_in_segments_without_rows(target: str, cut: int | None) -> None:
    values = [encoded(one) for one in LOADED]
    builder, others = task_of(target)
    for at in range(0, len(values), cut or len(values)):
        builder.add(batch(values[at : at + (cut or len(values))], offset=2 + at))
    parts = builder.finish()
    assert shape(parts) == [("segment", 2, 2 + len(LOADED))]
    (segment,) = segments(parts)
    assert [(str(net.layout.name), len(net)) for net in segment.changes] == [("shop.orders", 4)]
    assert others.left_out > 10 * 5000
    applied_alone = MemoryTarget()
    begun(applied_alone, target_id=target).accept(parts)
    assert set(applied_alone.tables["shop.orders"].rows) == {(n,) for n in (0, 1, 2, 5, 9)}
    assert applied_alone.position is not None
    assert (applied_alone.position.seqno, applied_alone.position.offsets) == (9, {0: 2 + len(LOADED)})
    assert [event.seqno for event in applied_alone.events] == [*range(10)]


@pytest.mark.parametrize("end", range(1, len(LOADED)))
def test_no_row_of_a_load_for_others_is_in_the_messages_of_a_range(end: int) -> None:
    """A range may end within an event, whose fragments then stay messages."""
    values = [encoded(one) for one in LOADED]
    target, parts = MemoryTarget(), list[Part]()
    for begin, stop in ((0, end), (end, len(values))):
        builder, _ = task_of("shelf")
        builder.add(batch(values[begin:stop], offset=2 + begin))
        parts += builder.finish()
    stayed = [value for part in parts if isinstance(part, pa.RecordBatch) for value in part["value"].to_pylist()]
    assert all(b"xxxxx" not in value for value in stayed)
    begun(target, target_id="shelf").accept(parts)
    assert set(target.tables["shop.orders"].rows) == {(n,) for n in (0, 1, 2, 5, 9)}
    assert applied_seqno(target) == 9


def test_large_messages_of_a_load_for_others_come_without_rows() -> None:
    (value,) = (encoded(one) for one in load_for_lake(3, LoadPart.ROWS))
    others = ForeignLoads("shelf")
    short = others.large(value)
    assert short is not None
    assert (others.left_out, b"xxxxx" in short) == (LARGE - len(short), False)
    assert others.large(encoded(record(1, [insert(1)]))) is None
    assert ForeignLoads("lake").large(value) is None


def test_rows_of_a_load_for_this_target_are_compacted_with_the_streams() -> None:
    builder, others = task_of("lake")
    builder.add(batch([encoded(one) for one in LOADED], offset=2))
    parts = builder.finish()
    assert joined_shape(parts) == [("segment", 2, 9), ("messages", 9, 16), ("segment", 16, 17)]
    assert [(str(net.layout.name), len(net)) for net in segments(parts)[0].changes] == [("shop.orders", 8)]
    assert others.left_out == 0


def test_relay_gets_the_rows_of_a_load_for_others(tmp_path: Path) -> None:
    values = [encoded(one) for one in LOADED]
    with RecordSpool(tmp_path) as records:
        builder = SegmentBuilder(TOPIC, 0, records=records, target="shelf")
        builder.add(batch(values, offset=2))
        (segment,) = segments(builder.finish())
    assert segment.records is not None
    assert len(segment.records) > sum(map(len, values))
    assert sum(len(net) for net in segment.changes) == 4


def test_large_message_with_which_a_stream_begins_stays_alone() -> None:
    builder = SegmentBuilder(TOPIC, 0)
    values = [encoded(marker(1, 0, -1, log_id=LOG_ID)), None, *map(encoded, events(2))]
    builder.add(message_batch([0] * 4, range(4), values), alone=True)
    assert joined_shape(builder.finish()) == [("messages", 0, 2), ("segment", 2, 4)]


def test_rows_of_messages_before_a_segment_count_for_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_builder, "LARGE_EVENT", 0)
    parts = built([*in_fragments(1, 2), *events(1, 2), *in_fragments(3, 2), *events(1, 4)], offset=2, events=True)
    assert len(segments(parts)) == 2
    target = MemoryTarget()
    made = begun(target)
    monkeypatch.setattr(open_commit, "COMMIT_ROWS", 3)
    made.accept(parts)
    assert [one for one in target.log if one != "stage"] == ["commit 0", "commit 2", "commit 4"]


def test_first_message_of_a_stream_stays_one() -> None:
    assert shape(built(events(3), alone=True)) == [("messages", 0, 1), ("segment", 1, 3)]
    assert shape(built(events(1), alone=True)) == [("messages", 0, 1)]
    assert shape(built(events(3), alone=True, cut=1)) == [("messages", 0, 1), ("segment", 1, 3)]


def test_log_s_first_event_stays_a_message_beside_its_marker_and_the_rest_counts() -> None:
    values = log(*(record(seqno, [insert(seqno)]) for seqno in range(4)))
    builder = SegmentBuilder(TOPIC, 0, events=True)
    builder.add(batch(values), alone=True)
    parts = builder.finish()
    assert shape(parts) == [("messages", 0, 2), ("segment", 2, 5)]
    target = MemoryTarget()
    core(target, NoRanges()).accept(parts)
    assert applied_seqno(target) == 3


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"seqno": 3}, id="seqno missing"),
        pytest.param({"seqno": 2, "prev_seqno": 0}, id="another predecessor"),
        pytest.param({"seqno": 2, "last_barrier": 1}, id="barrier that is none"),
        pytest.param({"seqno": 2, "epoch": 2}, id="another epoch"),
    ],
)
@pytest.mark.parametrize("fragments", [1, 2])
def test_events_that_are_not_linked_are_in_two_segments(second: dict[str, Any], fragments: int) -> None:
    records = [*events(1), *[one | second for one in in_fragments(2, fragments)]]
    assert shape(built(records)) == [("segment", 0, 1), ("segment", 1, 1 + fragments)]


def test_barriers_that_are_named_are_in_one_segment() -> None:
    records = [
        record(1, [insert(1)], last_barrier=-1),
        record(2, [insert(2)], shard="#UNKNOWN", last_barrier=-1),
        record(3, [insert(3)], last_barrier=2),
        *in_fragments(4, 2, shard="#UNKNOWN", last_barrier=2),
        record(5, [insert(5)], last_barrier=4),
    ]
    parts = built(records, offset=2, events=True)
    assert shape(parts) == [("segment", 2, 8)]
    target = MemoryTarget()
    begun(target).accept([*parts, batch([encoded(record(6, last_barrier=4))], offset=8)])
    assert target.position is not None
    assert target.position.seqno == 6
    wrong = [*records[:5], record(5, [insert(5)], last_barrier=2)]
    assert shape(built(wrong)) == [("segment", 0, 5), ("segment", 5, 6)]


def test_gap_in_the_offsets_does_not_end_a_segment() -> None:
    builder = SegmentBuilder(TOPIC, 0)
    for at, one in zip((2, 9, 17), [*events(1), *in_fragments(2, 2)], strict=True):
        builder.add(batch([encoded(one)], offset=at))
    parts = builder.finish()
    assert shape(parts) == [("segment", 2, 18)]
    assert segments(parts)[0].offsets == array("q", [2, 9])
    target = MemoryTarget()
    made = core(target, NoRanges())
    made.accept([batch(log(record(0)))])
    builder = SegmentBuilder(TOPIC, 0, events=True)
    for at, one in zip((2, 9, 17), events(3), strict=True):
        builder.add(batch([encoded(one)], offset=at))
    made.accept(builder.finish())
    assert target.position is not None
    assert target.position.offsets == {0: 18}


@pytest.mark.parametrize("limit", ["COMMIT_ROWS", "COMMIT_BYTES"])
@pytest.mark.parametrize("fragments", [1, 2])
def test_segments_end_where_a_commit_has_enough(monkeypatch: pytest.MonkeyPatch, limit: str, fragments: int) -> None:
    records = [one for seqno in range(1, 6) for one in in_fragments(seqno, fragments)]
    parts = segments(built(records))
    assert [len(part) for part in parts] == [5]
    enough = 2 * fragments if limit == "COMMIT_ROWS" else sum(len(one.inserts.data) for one in parts[0].changes) // 2
    monkeypatch.setattr(segment_builder, limit, enough)
    parts = segments(built(records, offset=2, events=True))
    assert len(parts) > 2
    assert sum(map(len, parts)) == 5
    if limit == "COMMIT_ROWS":
        assert [part.rows for part in parts] == [enough, enough, fragments]
    target = MemoryTarget()
    begun(target).accept(parts)
    assert target.position is not None
    assert target.position.seqno == 5


@pytest.mark.parametrize("with_events", [False, True])
@pytest.mark.parametrize("cut", [None, 1])
def test_fields_of_a_segment_are_those_of_its_events(cut: int | None, *, with_events: bool) -> None:
    records = [
        *([one | {"last_barrier": -1} for one in MIXED]),
        record(7, gtid=None, commit_time=None),
    ]
    (segment,) = segments(built(records, offset=40, cut=cut, events=with_events))
    messages = scanned([encoded(one) for one in records], offset=40)
    whole = [message.header for message in messages if message.header.last_frag]
    assert (segment.partition, segment.first, segment.prev_seqno, segment.last_barrier) == (0, 1, 0, -1)
    assert list(segment.offsets) == [message.offset for message in messages if message.header.fragno == 0]
    assert (segment.begin, segment.end, len(segment)) == (40, 40 + len(records), 7)
    assert segment.header == whole[-1]
    assert segment.messages == len(records)
    assert segment.size == sum(message.size for message in messages)
    assert segment.rows == sum(header.rows for header in whole)
    gtids = []
    for run in segment.gtids:
        uuid, _, number = run.first.rpartition(":")
        gtids += [f"{uuid}:{int(number) + n}" for n in range(run.count)]
    assert gtids == [header.gtid for header in whole if header.gtid]
    assert list(segment.commit_times) == [header.commit_time or 0 for header in whole]
    assert list(segment.events) == ([AppliedEvent.of(header) for header in whole] if with_events else [])
    given = segment.event_range()
    assert (given.first, given.offsets, given.end, given.header, given.body) == (
        1,
        segment.offsets,
        segment.end,
        segment.header,
        segment,
    )


def test_changes_of_a_key_are_one_change() -> None:
    records = [
        record(1, [insert(1, 2)]),
        record(2, [change("update", [([1, "1"], [1, "x"])])]),
        record(3, [change("delete", [([2, "2"], None)])]),
    ]
    (segment,) = segments(built(records))
    (net,) = segment.changes
    assert decoded(net.inserts, 2) == [(1, "x")]
    assert (len(net.deletes), net.changes, segment.rows) == (0, 4, 4)


@pytest.mark.parametrize("fragments", [1, 2])
def test_contradiction_leaves_the_offsets_unread_and_the_core_raises_its_error(fragments: int) -> None:
    twice = [one | {"seqno": 3, "prev_seqno": 2} for one in in_fragments(2, fragments)]
    records = [record(1, [insert(1)]), *in_fragments(2, fragments), *twice, *events(2, 4)]
    end = 2 + 1 + 2 * fragments
    parts = built(records, offset=2, events=True)
    unread = parts[0]
    assert isinstance(unread, Unread)
    assert (unread.begin, unread.messages) == (2, unread.end - 2)
    assert unread.end >= end
    assert [offset for _, begin, to in shape(parts) for offset in range(begin, to)] == list(range(2, 2 + len(records)))

    values = [encoded(one) for one in records]
    ranges = Ranges()
    ranges.values = {(0, 2 + n): value for n, value in enumerate(values)}
    where = []
    for read in ([batch(values, offset=2)], parts):
        target = MemoryTarget()
        made = core(target, ranges)
        made.accept([batch(log(record(0)))])
        with breaks(Rule.KEY_EXISTS) as raised:
            made.accept(read)
        where.append(raised.value.where)
    assert where[0] == where[1]


@pytest.mark.parametrize(("messages", "large"), [(0, True), (2, False)])
def test_the_driver_reads_a_batch_at_a_time_what_no_task_has_read(messages: int, *, large: bool) -> None:
    ranges = Ranges()
    ranges.values = {(0, 2 + n): encoded(one) for n, one in enumerate(events(2))}
    target = MemoryTarget()
    made = core(target, ranges)
    made.accept([batch(log(record(0))), Unread(0, 2, 4, messages, 100 * messages)])
    assert applied_seqno(target) == 2
    assert ranges.large == [large]


def test_a_builder_goes_on_after_a_contradiction() -> None:
    records = [record(1, [insert(1), insert(1)]), record(3, [insert(1)]), *row_parts(4, 2)]
    assert shape(built(records)) == [("unread", 0, 1), ("segment", 1, 4)]


def test_segments_after_a_contradiction_have_the_changes_of_tables_with_a_history() -> None:
    builder = SegmentBuilder(TOPIC, 0, history=history_tables(["shop"]))
    builder.add(batch([encoded(one) for one in (record(1, [insert(1), insert(1)]), record(3, [insert(1)]))]))
    _, segment = builder.finish()
    assert isinstance(segment, Segment)
    assert [str(net.layout.name) for net in segment.changes] == ["shop.orders", "shop__history.orders"]


@pytest.mark.parametrize("alone", [True, False])
def test_refused_messages_leave_nothing_of_their_batch(*, alone: bool) -> None:
    """The driver then reads them itself; it would take a message that it has already for damage."""
    builder = SegmentBuilder(TOPIC, 0)
    good = [encoded(one) for one in events(2)]
    if not alone:
        builder.add(batch(good))
    with pytest.raises(LogDamaged):
        builder.add(batch([*good, b"no fragment"], offset=2), alone=alone)
    assert shape(builder.finish()) == ([] if alone else [("segment", 0, 2)])


class Filling(MemoryTarget):
    """A target that merges images without all columns into its rows."""

    def __init__(self, key: Sequence[int]) -> None:
        super().__init__()
        self.tables = {"shop.orders": Partly(key) if key else Counted()}

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        defaults = dict(zip(COLUMNS, DEFAULTS, strict=True))
        table = make_table(changes[0].layout.name, changes[0].layout.columns, [], defaults=defaults)
        super().stage([with_whole_inserts(net, table) for net in changes], last=last)


@st.composite
def partial_logs(draw: st.DrawFn, key: tuple[int, ...]) -> list[bytes]:
    """A log of changes with partial images, in events of one fragment or more, some given up; DDL between them."""
    changes, _ = draw(histories(key))
    rest = [one for _, one in changes]
    values = log()
    epoch, seqno, barrier = 1, 0, -1
    while rest:
        fields: Record = {"last_barrier": barrier, "epoch": epoch}
        if draw(st.integers(0, 9)) == 0:
            values.append(encoded(record(seqno, [statement("A")], **DDL, **fields)))
            barrier, seqno = seqno, seqno + 1
            continue
        size = draw(st.integers(1, 4))
        event, rest = rest[:size], rest[size:]
        pieces: list[tuple[list[Record], int]] = []  # what each fragment has, and the rows with it
        for done, one in enumerate(event):
            parts = draw(st.sampled_from([1, 1, 2]))
            if parts == 1 and pieces and draw(st.booleans()) and "action" in pieces[-1][0][-1]:
                pieces[-1] = ([*pieces[-1][0], one], done + 1)
            elif parts == 1:
                pieces.append(([one], done + 1))
            else:
                cut, end = in_parts(one, 2)
                pieces += [([cut], done), ([end], done + 1)]
        for given_up in [True, False] if draw(st.integers(0, 5)) == 0 else [False]:
            count = draw(st.integers(0, len(pieces) - 1)) if given_up else len(pieces)
            for fragno, (content, rows) in enumerate(pieces[:count]):
                last = fragno == len(pieces) - 1
                one = record(seqno, content, fragno=fragno, rows=rows, last_frag=last, **fields)
                values.append(encoded(one))
            if given_up:
                epoch += 1
                fields["epoch"] = epoch
                values.append(encoded(marker(epoch, seqno, seqno - 1, log_id=LOG_ID)))
        seqno += 1
    return values


@pytest.mark.parametrize(
    ("key", "columns"), [(KEY, TOUCHED), (KEY, None), ((), None)], ids=["metadata columns", "keyed", "without a key"]
)
@settings(suppress_health_check=[HealthCheck.large_base_example, HealthCheck.too_slow])
@given(st.data())
def test_batches_cut_into_tasks_leave_what_their_messages_leave(
    key: tuple[int, ...], columns: MetadataColumns | None, data: st.DataObject
) -> None:
    values = data.draw(partial_logs(key))
    numbers = range(1, len(values))
    batches = [0, *sorted(data.draw(st.sets(st.sampled_from(numbers)))), len(values)] if numbers else [0, len(values)]
    ranges = Ranges()
    ranges.values = {(0, offset): value for offset, value in enumerate(values)}
    by_messages, by_tasks = Filling(key), Filling(key)
    cores = core(by_messages, ranges, columns), core(by_tasks, ranges, columns)
    kept = segment_builder.COMMIT_ROWS
    segment_builder.COMMIT_ROWS = data.draw(st.sampled_from([1, 3, kept]))  # type: ignore[misc]
    try:
        for begin, end in pairwise(batches):
            cores[0].accept([batch(values[begin:end], offset=begin)])
            parts: list[Part] = []
            at = begin
            while at < end:
                upto = data.draw(st.integers(at + 1, end))
                builder = SegmentBuilder(TOPIC, 0, columns, events=True)
                while at < upto:
                    to = data.draw(st.integers(at + 1, upto))
                    builder.add(batch(values[at:to], offset=at), alone=at == 0)
                    at = to
                parts += builder.finish()
            cores[1].accept(data.draw(st.permutations(parts)))
            assert applied(by_tasks) == applied(by_messages)
    finally:
        segment_builder.COMMIT_ROWS = kept  # type: ignore[misc]
    assert by_tasks.position is not None
