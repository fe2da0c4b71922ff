"""Ranges of offsets are divided, shared among tasks and read in slices: each offset once, and in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable, ConfigError, SparkGone
from connector.kafka.consumer import OffsetMissing
from connector.log.compact.history import history_tables
from connector.log.compact.segment import Segment
from connector.spark.stream import range_task, worker
from connector.spark.stream.batch_sizer import FEWEST, BatchSizer
from connector.spark.stream.micro_batches import SHARES, MicroBatches
from connector.spark.stream.parts import Batch
from connector.spark.stream.range_task import MESSAGES, Compaction, RangeTask, TaskRange, shared
from connector.spark.stream.task_result import FAILED, ResultPiece, failure_of, in_pieces, written
from tests.support.fragments import batch, change, encoded, record

Tasks = list[list[TaskRange]]


def offsets(bounds: Iterable[TaskRange]) -> list[tuple[int, int]]:
    return [(one.partition, offset) for one in bounds for offset in range(one.begin, one.end)]


@st.composite
def ranges(draw: st.DrawFn, least: int = 0) -> list[TaskRange]:
    """One range for each of some partitions."""
    return [
        TaskRange(partition, begin, begin + draw(st.integers(least, 40)), draw(st.booleans()))
        for partition, begin in enumerate(draw(st.lists(st.integers(0, 99), min_size=1, max_size=5)))
    ]


@given(st.integers(0, 50), st.integers(1, 20), st.booleans())
def test_parts_of_a_range_cover_it_exactly_and_are_about_equal(length: int, count: int, first: bool) -> None:
    whole = TaskRange(3, 7, 7 + length, first)
    parts = list(whole.divided(count))
    assert len(parts) == count
    assert offsets(parts) == offsets([whole])
    assert [one.begin for one in parts] == [7, *(one.end for one in parts[:-1])]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert [one.first for one in parts] == [first] + [False] * (count - 1)
    assert len(parts[0]) == -(-length // count)  # what is read next is never empty


@given(ranges(), st.integers(1, 50))
def test_tasks_have_each_offset_once_in_order_up_to_their_limit(bounds: list[TaskRange], most: int) -> None:
    tasks = shared(bounds, most)
    parts = [one for task in tasks for one in task]
    assert offsets(parts) == offsets(bounds)
    assert all(map(len, parts))
    assert all(0 < sum(map(len, task)) <= most for task in tasks)
    begun = {one.partition: one.begin for one in bounds if one.first and len(one)}
    assert {one.partition: one.begin for one in parts if one.first} == begun
    assert all(parts.count(one) == 1 for one in bounds if 0 < len(one) <= most)  # a small range stays whole


def test_small_partitions_share_a_task() -> None:
    assert shared([TaskRange(n, 0, 3) for n in range(4)], 6) == [
        [TaskRange(0, 0, 3), TaskRange(1, 0, 3)],
        [TaskRange(2, 0, 3), TaskRange(3, 0, 3)],
    ]


def test_segments_of_a_task_have_the_changes_of_tables_with_a_history() -> None:
    events = [record(n, [change("update", [([1, "x"], [1, str(n)])])]) for n in range(5)]
    read = batch([encoded(one) for one in events])
    reader: Any = SimpleNamespace(batches=lambda *_, **__: iter([read]))
    compaction = Compaction(compact=True, history=history_tables(["shop"]))
    task = RangeTask(kafka=Kafka(bootstrap="nowhere:1"), topic="thl.shop", compaction=compaction, spool=None)
    (segment,) = task._read(TaskRange(0, 0, 5), reader, None, None)
    assert isinstance(segment, Segment)
    assert {str(net.layout.name): len(net) for net in segment.changes} == {"shop.orders": 1, "shop__history.orders": 5}


class Context:
    """A Spark context whose tasks return each offset as a message; refuses results of more offsets than `limit`."""

    def __init__(self, folder: Path | None = None, limit: int = 1 << 30) -> None:
        self.folder = folder
        self.limit = limit
        self.read: list[Tasks] = []

    def parallelize(self, tasks: Tasks, count: int) -> Any:
        if count < 1:
            raise ZeroDivisionError
        assert len(tasks) == count
        return SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=lambda: self._collect(tasks)))

    def _collect(self, tasks: Tasks) -> list[ResultPiece]:
        if len(offsets(one for task in tasks for one in task)) > self.limit:
            raise RuntimeError("results are bigger than spark.driver.maxResultSize")
        self.read.append(tasks)
        return [piece for task in reversed(tasks) for one in task for piece in self._pieces(one)]

    def _pieces(self, one: TaskRange) -> Iterator[ResultPiece]:
        parts = [batch([bytes(10)] * len(one), partition=one.partition, offset=one.begin)]
        contents = in_pieces(parts) if self.folder is None else [written(self.folder, parts)]
        for number, content in enumerate(contents):
            yield ResultPiece(one.partition, one.begin, number, content)


def session(context: object, slots: int) -> Any:
    """A session with this context."""
    return SimpleNamespace(tasks=slots, spark=SimpleNamespace(sparkContext=context))


def stream(context: Context, sizer: BatchSizer, slots: int = 2) -> MicroBatches:
    made = MicroBatches.__new__(MicroBatches)
    made._session = session(context, slots)
    made._workers = SimpleNamespace(starting=False)  # type: ignore[assignment]
    made._sizer = sizer
    made._interleaved = False
    made._begun = set()
    made._clock = SystemClock()
    made._tasks_began, made._warned = None, 0.0
    made._folder = context.folder
    made._task = None  # type: ignore[assignment]
    return made


def read(batches: Iterable[Batch]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for one in batches:
        for part in one.parts:
            assert isinstance(part, pa.RecordBatch)
            found += zip(part["partition"].to_pylist(), part["offset"].to_pylist(), strict=True)
    return found


class Steady(BatchSizer):
    """Always as many messages, unless they do not fit."""

    def seen(self, messages: int, size: int, events: int = 0) -> None:
        """Nothing changes."""


@given(ranges(), st.integers(1, 60), st.integers(1, 4))
def test_slices_have_each_offset_once_and_each_partition_in_order(
    bounds: list[TaskRange], messages: int, slots: int
) -> None:
    context = Context()
    batches = list(stream(context, Steady(messages, 1), slots)._slices([one for one in bounds if len(one)]))
    found = read(batches)
    assert sorted(found) == sorted(offsets(bounds))
    for one in bounds:
        assert [at for at in found if at[0] == one.partition] == offsets([one])
    parts = [one for tasks in context.read for task in tasks for one in task]
    firsts = [(one.partition, one.begin) for one in parts if one.first]
    assert sorted(firsts) == [(one.partition, one.begin) for one in bounds if one.first and len(one)]
    # A slice has a share of every partition, rounded up.
    assert all(each.messages < messages + len(bounds) for each in batches)


def test_a_slice_has_a_share_of_every_partition() -> None:
    context = Context()
    list(stream(context, Steady(10, 1))._slices([TaskRange(0, 0, 30), TaskRange(1, 5, 15)]))
    assert [{one.partition for task in tasks for one in task} for tasks in context.read[:3]] == [{0, 1}] * 3


def test_more_slices_than_a_partition_has_offsets_end() -> None:
    context = Context()
    bounds = [TaskRange(partition, 0, 2, first=True) for partition in range(5)]
    assert sorted(read(stream(context, Steady(1, 1))._slices(bounds))) == sorted(offsets(bounds))


def test_a_task_has_a_part_of_what_is_read_at_once_that_pays() -> None:
    for slots, each in ((2, 160), (64, 320 // SHARES)):
        context = Context()
        list(stream(context, Steady(320, 1), slots)._slices([TaskRange(0, 0, 320)]))
        (tasks,) = context.read
        assert {sum(map(len, task)) for task in tasks} == {each}


def test_size_of_what_was_read_decides_how_much_is_read_next() -> None:
    context = Context()
    sizer = BatchSizer(100, FEWEST * len_of_message())
    batches = list(stream(context, sizer)._slices([TaskRange(0, 0, 400)]))
    assert [one.messages for one in batches][:2] == [100, FEWEST]
    assert sizer.messages == FEWEST
    assert [one.full for one in batches] == [True] * (len(batches) - 1) + [False]


def len_of_message() -> int:
    return batch([bytes(10)]).nbytes


@pytest.mark.parametrize("limit", [1, 3, 30])
def test_what_spark_has_no_room_for_is_read_in_smaller_slices(limit: int) -> None:
    context = Context(limit=limit)
    bounds = [TaskRange(0, 4, 204, first=True)]
    batches = list(stream(context, BatchSizer(200, 1 << 20))._slices(bounds))
    assert read(batches) == offsets(bounds)
    assert all(one.messages <= limit for one in batches)
    firsts = [one for tasks in context.read for task in tasks for one in task if one.first]
    assert [one.begin for one in firsts] == [4]


def test_a_message_that_spark_has_no_room_for_ends_the_stream() -> None:
    with pytest.raises(SparkGone) as ended:
        list(stream(Context(limit=0), BatchSizer(200, 1 << 20))._slices([TaskRange(0, 0, 10)]))
    assert "apply.heap" in ended.value.hint


def test_another_error_of_spark_is_raised_at_once() -> None:
    def fail(_tasks: Tasks) -> list[ResultPiece]:
        raise RuntimeError("a worker has ended")

    context = Context()
    context._collect = fail  # type: ignore[method-assign]
    sizer = BatchSizer(200, 1 << 20)
    with pytest.raises(RuntimeError, match="a worker has ended"):
        list(stream(context, sizer)._slices([TaskRange(0, 0, 10)]))
    assert sizer.messages == 200


def test_slices_by_way_of_files_leave_none(tmp_path: Path) -> None:
    context = Context(tmp_path)
    bounds = [TaskRange(0, 0, 30), TaskRange(1, 5, 15)]
    assert sorted(read(stream(context, Steady(10, 1))._slices(bounds))) == offsets(bounds)
    assert list(tmp_path.iterdir()) == []


def test_ranges_of_a_batch_are_joined_and_begin_a_partition_once() -> None:
    one = stream(Context(), Steady(10, 1))
    found = one._joined([TaskRange(1, 8, 12), TaskRange(0, 3, 5), TaskRange(1, 4, 8), TaskRange(1, 12, 13)])
    assert sorted(found, key=attrgetter("partition")) == [
        TaskRange(0, 3, 5, first=True),
        TaskRange(1, 4, 13, first=True),
    ]
    found = one._joined([TaskRange(2, 0, 1), TaskRange(1, 13, 20)])
    assert sorted(found, key=attrgetter("partition")) == [TaskRange(1, 13, 20), TaskRange(2, 0, 1, first=True)]


class Reader:
    """Gives a message for each offset, but no brokers answer from offset 7 on."""

    def __init__(self) -> None:
        self.closed = False
        self.large: list[bool] = []

    def batches(
        self, partition: int, begin: int, end: int, *, large: bool = False, short: object = None
    ) -> Iterator[pa.RecordBatch]:
        self.large.append(large)
        for offset in range(begin, end):
            if offset >= 7:
                raise OffsetMissing("gone", partition=partition, topic="t", begin=begin)
            yield batch([b"x"], partition=partition, offset=offset)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> RangeTask:
    """A task in this process, whose reader is a `Reader`."""
    monkeypatch.setattr(worker, "prepare", lambda: None)
    made = RangeTask(kafka=Kafka(), topic="t", compaction=MESSAGES, spool=None)
    monkeypatch.setattr(range_task, "_readers", {made._brokers: Reader()})
    return made


def test_an_error_of_a_range_is_a_piece_and_ends_its_reader(task: RangeTask) -> None:
    (reader,) = range_task._readers.values()
    *pieces, failed = task([[TaskRange(0, 1, 4)], [TaskRange(1, 5, 9)]])
    assert [piece[:3] for piece in pieces] == [(0, 1, 0)]
    assert failed[:3] == (1, 5, FAILED)
    assert isinstance(failure_of(failed), BrokerUnavailable)
    assert reader.closed  # type: ignore[attr-defined]
    assert not range_task._readers


def test_messages_that_may_be_large_are_read_a_batch_at_a_time(task: RangeTask) -> None:
    (reader,) = range_task._readers.values()
    assert len(list(task([[TaskRange(0, 1, 3)], [TaskRange(0, 3, 5, large=True)]]))) == 2
    assert reader.large == [False, True]  # type: ignore[attr-defined]


def test_a_result_that_cannot_be_stored_is_an_error_with_the_remedy(task: RangeTask, tmp_path: Path) -> None:
    (failed,) = replace(task, spool=tmp_path / "none")([[TaskRange(0, 1, 4)]])
    failure = failure_of(failed)
    assert isinstance(failure, ConfigError)
    assert failure.where == {"folder": str(tmp_path / "none")}
    assert "apply.checkpoint_dir" in failure.hint
