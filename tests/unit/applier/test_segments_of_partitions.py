"""Segments of several partitions are applied together, with the result that their events have one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from connector.applier import core as core_module
from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.applier.segment_changes import SegmentChanges
from connector.applier.sequencer_feed import SequencerFeed
from connector.applier.stop_condition import StopCondition, ToSeqno
from connector.clock import SystemClock
from connector.errors import LogDamaged
from connector.log.compact.compact import Compactor
from connector.log.compact.metadata_columns import metadata_columns
from connector.log.compact.net_changes import AppliedEvent, NetChanges
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.message import Message
from connector.log.ids import UNKNOWN_SHARD, Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.position import TargetPosition
from connector.spark.stream.parts import Part
from connector.spark.stream.segment_builder import SegmentBuilder
from tests.support.fragments import batch, change, encoded, record
from tests.support.memory_target import Keyed, MemoryTarget
from tests.support.partitioned_log import PartitionedLog
from tests.unit.applier.test_core import TOPIC, LargeMessages, Ranges, history

SOURCES = ("6f1c9a52-0000-11ee-8c99-0242ac120002", "6f1c9a52-0000-11ee-8c99-0242ac120003")


@dataclass
class Log(PartitionedLog):
    """Each partition has tables of its own."""

    rows: dict[str, dict[int, str]] = field(default_factory=dict)

    def event(
        self, partition: int, keys: Sequence[int], *, barrier: bool = False, table: str = "", **more: Any
    ) -> None:
        """An event that writes the rows of these keys, in a fragment for each."""
        partition, seqno = 0 if barrier else partition, self.last + 1
        for number, key in enumerate(keys):
            values = self.rows.setdefault(f"shop.{table or f't{partition}'}", {})
            text = f"{seqno} {number}"
            images = ([key, values[key]], [key, text]) if key in values else (None, [key, text])
            values[key] = text
            fields: dict[str, Any] = {
                "epoch": len(self.firsts),
                "prev_seqno": self.tails[partition],
                "last_barrier": self.barrier,
                "fragno": number,
                "rows": number + 1,
                "last_frag": number == len(keys) - 1,
                "shard": UNKNOWN_SHARD if barrier else f"s{partition}",
            }
            kind = "insert" if images[0] is None else "update"
            one = record(seqno, [change(kind, [images], table=table or f"t{partition}")], **(fields | more))
            self.add(partition, one)
        self.tails[partition] = self.last = seqno
        self.barrier = seqno if barrier else self.barrier

    def parts(
        self, partition: int, begin: int, end: int, interval: int | None, *, first: bool | None = None
    ) -> Iterator[Part]:
        """Return what is read of a partition's offsets, by a task if there is an interval."""
        messages = batch(self.values[partition][begin:end], partition=partition, offset=begin)
        if interval is None:
            return iter([messages])
        builder = SegmentBuilder(TOPIC, partition, events=True, interval=interval)
        builder.add(messages, alone=not begin if first is None else first)
        return iter(builder.finish())


def core_of(log: Log, target: MemoryTarget, until: StopCondition | None = None) -> ApplyCore:
    position, known = target.claim("shop"), history(log.firsts, log.last)
    ranges = Ranges()
    ranges.values |= {(p, at): value for p, values in enumerate(log.values) for at, value in enumerate(values)}
    return ApplyCore(
        target,
        position,
        EventSequencer[Message, Messages | Segment](
            topic=TOPIC, partitions=log.count, position=position, history=known
        ),
        PartitionBuffers(TOPIC, LargeMessages(()), ranges),
        log_id=known.log_id,
        gtid_set=position.gtid_set or "",
        topic=TOPIC,
        clock=SystemClock(),
        until=until,
    )


def rows_of(target: MemoryTarget) -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {}
    for name, one in target.tables.items():
        assert isinstance(one, Keyed)
        found[name] = {row[0]: row[1] for row in one.rows.values()}
    return found


@st.composite
def logs(draw: st.DrawFn) -> Log:
    log = Log(draw(st.integers(2, 4)))
    log.event(draw(st.integers(0, 1)), [0])
    what = st.sampled_from(["event"] * 20 + ["barrier"] * 2 + ["epoch", "other source", "no gtid"])
    for kind in draw(st.lists(what, min_size=1, max_size=40)):
        if kind == "epoch":
            log.epoch()
            continue
        more: dict[str, Any] = {}
        if kind == "other source":
            more["gtid"] = f"{SOURCES[1]}:{3 * log.last + 7}"
        if kind == "no gtid":
            more["gtid"] = None
        keys = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
        log.event(draw(st.integers(0, log.count - 1)), keys, barrier=kind == "barrier", **more)
    return log


def applied(log: Log, intervals: Sequence[int | None], data: st.DataObject, until: int | None = None) -> MemoryTarget:
    """Return a target that the log was applied to, read in any steps, each with one of some intervals."""
    target = MemoryTarget()
    end_at = None if until is None else ToSeqno(Seqno(until))
    core, at, begun = core_of(log, target, end_at), [0] * log.count, set[int]()
    restarts = data.draw(st.integers(0, 2))
    while not core.done and (left := [p for p, values in enumerate(log.values) if at[p] < len(values)]):
        parts: list[Part] = []
        interval = data.draw(st.sampled_from(intervals))
        for partition in data.draw(st.sets(st.sampled_from(left), min_size=1)):
            end = min(len(log.values[partition]), at[partition] + data.draw(st.integers(1, 30)))
            parts += log.parts(partition, at[partition], end, interval, first=partition not in begun)
            begun.add(partition)
            at[partition] = end
        core.accept(parts, more=data.draw(st.booleans()))
        if restarts and target.position is not None and data.draw(st.booleans()):
            restarts -= 1
            core, begun = core_of(log, target, end_at), set()
            at = [target.position.offsets.get(p, 0) for p in range(log.count)]
    core.accept(())
    assert core.done == (until is not None)
    return target


@settings(max_examples=200, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(logs(), st.lists(st.sampled_from([1, 4, 16, 1 << 20]), min_size=1, max_size=2), st.data())
def test_segments_have_the_result_of_their_events_one_by_one(
    log: Log, intervals: list[int], data: st.DataObject
) -> None:
    one_by_one, by_segments = applied(log, [None], data), applied(log, intervals, data)
    assert rows_of(by_segments) == rows_of(one_by_one) == log.rows
    assert by_segments.position is not None
    assert one_by_one.position is not None
    assert by_segments.position == replace(one_by_one.position, offsets=by_segments.position.offsets)
    assert by_segments.position.seqno == log.last
    assert [event.seqno for event in by_segments.events] == list(range(log.last + 1))


@settings(max_examples=100, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(logs(), st.data())
def test_a_stop_within_segments_is_exact(log: Log, data: st.DataObject) -> None:
    until = data.draw(st.just(log.last) | st.integers(0, log.last))
    one_by_one, by_segments = applied(log, [None], data, until), applied(log, [4, 1 << 20], data, until)
    assert by_segments.position is not None
    assert by_segments.position.seqno == until
    assert rows_of(by_segments) == rows_of(one_by_one)


def test_the_last_event_of_a_group_ends_the_applier_whichever_segment_has_it() -> None:
    log = interleaved(7)
    core = core_of(log, MemoryTarget(), ToSeqno(Seqno(6)))
    core.accept([part for p in range(2) for part in log.parts(p, 0, 9, 1 << 20)])
    assert core.position.seqno == 6
    assert core.done


@pytest.mark.parametrize("rewound_from", [8, 9, 12, 15])  # the first events of two segments, one within, the last
def test_a_commit_ends_where_a_rewound_target_has_caught_up(rewound_from: int, used: list[int]) -> None:
    """There the target is consistent; later rows must be as the log has them."""
    log = interleaved(32)
    commits: list[tuple[int, bool, bool]] = []  # seqno, consistent, with rows that replace existing ones

    class Target(MemoryTarget):
        again = False

        def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
            self.again = changes[0].again
            assert {net.again for net in changes} == {self.again}
            super().stage(changes, last=last)

        def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
            super().commit(position, events)
            commits.append((position.seqno, position.consistent, self.again))

    target = Target()
    core_of(log, target).accept([part for p in range(2) for part in log.parts(p, 0, 2, None)])
    begin = target.position
    assert begin is not None
    before = core_of(log, target, ToSeqno(Seqno(rewound_from)))
    before.accept([part for p in range(2) for part in log.parts(p, 2, 17, None)])
    target.position = replace(begin, consistent=False, rewound_from=Seqno(rewound_from))
    commits.clear()
    core_of(log, target).accept([part for p in range(2) for part in log.parts(p, 2, 17, 8, first=False)])
    assert used
    assert all(
        (consistent, again) == (seqno >= rewound_from, seqno <= rewound_from) for seqno, consistent, again in commits
    )
    assert {rewound_from, 31} <= {seqno for seqno, _, _ in commits}
    assert rows_of(target) == log.rows


def interleaved(count: int, partitions: int = 2) -> Log:
    log = Log(partitions)
    for number in range(count):
        log.event(number % partitions, [number])
    return log


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of events of each group of segments that was accepted."""
    found: list[int] = []
    accepted = SequencerFeed._accepted

    def noting(self: SequencerFeed, segments: Sequence[Segment]) -> bool:
        if accepted(self, segments):
            found.append(sum(map(len, segments)))
            return True
        return False

    monkeypatch.setattr(SequencerFeed, "_accepted", noting)
    return found


def test_interleaved_events_are_applied_as_segments(used: list[int]) -> None:
    log = interleaved(32)
    target = MemoryTarget()
    core = core_of(log, target)
    core.accept([part for p in range(2) for part in log.parts(p, 0, len(log.values[p]), 8)])
    assert used == [6, 8, 8, 8]  # the first event of each partition stays a message
    assert target.position is not None
    assert target.position.gtid_set == f"{SOURCES[0]}:1-32"
    assert target.position.offsets == {0: 17, 1: 17}


def test_gtids_of_a_segment_after_an_event_of_another_source_are_those_of_their_events(used: list[int]) -> None:
    log = Log(2)
    for partition in (0, 1):
        log.event(partition, [0])
    log.event(0, [1, 2], gtid=f"{SOURCES[1]}:9")
    for partition in (0, 1, 0):
        log.event(partition, [3 + log.last])
    target = MemoryTarget()
    core_of(log, target).accept([part for p in range(2) for part in log.parts(p, 0, len(log.values[p]), 1 << 20)])
    assert used == [4]
    assert target.position is not None
    assert target.position.gtid_set == f"{SOURCES[0]}:1-2:4-6,{SOURCES[1]}:9"


def test_a_segment_waits_while_more_is_read_and_no_longer(used: list[int]) -> None:
    log = interleaved(32)
    for more, seqno in ((True, 15), (False, 20)):
        target = MemoryTarget()
        core = core_of(log, target)
        core.accept([*log.parts(0, 0, 17, 8), *log.parts(1, 0, 11, 8)], more=more)
        assert target.position is not None
        assert target.position.seqno == seqno
        core.accept(log.parts(1, 11, 17, 8))
        assert target.position.seqno == 31
    assert used == [6, 8, 8, 8, 6, 8, 8]  # of the interval that did not wait, the events came one by one


def test_partitions_that_change_one_table_are_applied_event_by_event(used: list[int]) -> None:
    log = Log(2)
    for number in range(16):
        log.event(number % 2, [number % 3], table="orders")
    target = MemoryTarget()
    core_of(log, target).accept([part for p in range(2) for part in log.parts(p, 0, 9, 1 << 20)])
    assert rows_of(target) == log.rows
    assert used == []


def test_a_hole_in_another_partition_is_never_passed() -> None:
    log = interleaved(32)
    hole = 5
    target = MemoryTarget()
    core = core_of(log, target)
    parts = [*log.parts(0, 0, 17, 8), *log.parts(1, 0, hole, 8), *log.parts(1, hole + 1, 17, 8)]
    with pytest.raises(LogDamaged):
        core.accept(parts)
    assert target.position is None or target.position.seqno < 9


def test_segments_of_events_that_are_applied_are_passed_over() -> None:
    log = interleaved(32)
    target = MemoryTarget()
    core_of(log, target).accept([*log.parts(0, 0, 11, None), *log.parts(1, 0, 11, None)])
    assert target.position is not None
    assert target.position.seqno == 19
    target.position = replace(target.position, offsets={0: 11})  # the other partition is read from its beginning
    core = core_of(log, target)
    core.accept([*log.parts(0, 11, 17, 8, first=True), *log.parts(1, 0, 17, 8)])
    assert target.position.seqno == 31
    assert rows_of(target) == log.rows


def test_segments_that_wait_never_pause_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_module, "WAITING_BYTES", 1)
    log = interleaved(32)
    target = MemoryTarget()
    core = core_of(log, target)
    core.accept([*log.parts(0, 0, 15, 16), *log.parts(1, 0, 17, 16)], more=True)
    assert core.full() == {1}


def test_partitions_that_wait_for_each_other_are_not_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have more than their share; the third has no events, so nothing of it would ever make them go on."""
    monkeypatch.setattr(core_module, "WAITING_BYTES", 900)
    log = Log(3)
    for number in range(60):
        log.event(number % 2, [number])
    target = MemoryTarget()
    core = core_of(log, target)
    first, second = 25, 15
    core.accept([*log.parts(0, 0, first, 64), *log.parts(1, 0, second, 64), *log.parts(2, 0, 1, 64)], more=True)
    assert core.full() == {0}
    core.accept(log.parts(1, second, 31, 64), more=True)
    assert core.full() == {1}
    core.accept(log.parts(0, first, 31, 64))
    assert target.position is not None
    assert target.position.seqno == 59


def test_net_changes_of_a_table_in_many_segments_are_staged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(2)
    for number in range(40):
        log.event(number % 2, [number % 3], barrier=number % 5 == 0, table=f"t{number % 2}")
    target = MemoryTarget()
    staged: list[str] = []
    stage = target.stage

    def noted(changes: Sequence[NetChanges], *, last: bool) -> None:
        staged.extend(str(net.layout.name) for net in changes)
        stage(changes, last=last)

    monkeypatch.setattr(target, "stage", noted)
    core_of(log, target).accept([part for p in range(2) for part in log.parts(p, 0, 99, 64)])
    assert rows_of(target) == log.rows
    assert len(staged) <= 2 * 2  # the log's first event is applied alone


def test_rows_without_a_key_stay_apart_where_they_have_metadata() -> None:
    """A delete does not say which of equal rows it takes: the target knows."""
    columns = metadata_columns([("seqno", "_seqno")])
    compacted = SegmentChanges(TOPIC, columns)
    for seqno, action in enumerate(("insert", "insert", "delete")):
        images = ([1, "a"], None) if action == "delete" else (None, [1, "a"])
        builder = SegmentBuilder(TOPIC, 0, columns)
        builder.add(batch([encoded(record(seqno, [change(action, [images], key=[])]))], offset=seqno))
        (segment,) = builder.finish()
        assert isinstance(segment, Segment)
        compacted.add(Compactor(TOPIC), segment)
    assert [(len(net.inserts), len(net.deletes)) for net in compacted.drain()] == [(1, 0), (1, 0), (0, 1)]


@pytest.mark.parametrize("cut", range(1, 23))
def test_segments_that_begin_with_a_barrier_have_no_gaps_wherever_a_batch_ends(cut: int) -> None:
    log = Log(2)
    log.event(0, [0])
    log.event(1, [0])
    log.event(0, [1], barrier=True)
    for number in range(20):
        log.event(0, [number + 10])
        if number % 2:
            log.event(1, [number + 10])
    builder = SegmentBuilder(TOPIC, 0, interval=1 << 20)
    values = log.values[0]
    builder.add(batch(values[:cut], offset=0))
    builder.add(batch(values[cut:], offset=cut))
    segments = [part for part in builder.finish() if isinstance(part, Segment)]
    assert sum(map(len, segments)) == len(values) - 1
    (barrier,) = (one for one in segments if one.first == 2)
    assert isinstance(barrier.seqnos, range)
    assert all(one.last_barrier == 2 for one in segments if one.first > 2)
