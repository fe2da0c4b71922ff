"""The applier gets the error that ends a query, Spark a short one; a closed stream ends in silence, without files."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable, ConfigError, SparkGone
from connector.kafka.range_reader import RangeReader
from connector.log.compact.segment import Unread
from connector.spark.callbacks import Callbacks
from connector.spark.stream import micro_batches
from connector.spark.stream.batch_queue import BatchQueue
from connector.spark.stream.batch_sizer import BatchSizer
from connector.spark.stream.micro_batches import MicroBatches, Reported
from connector.spark.stream.range_task import TaskRange
from connector.spark.stream.task_result import FAILED, ResultPiece, failure_as_bytes, in_pieces

FAILURE = ValueError("a plan " * 20_000)
NO_ROOM = ConfigError("no room", hint="make some", folder="/x")


class Frame:
    """A batch whose plan cannot be made."""

    def __init__(self, failure: BaseException) -> None:
        self._failure = failure

    @property
    def _jdf(self) -> None:
        raise self._failure


def stream(pieces: list[ResultPiece]) -> MicroBatches:
    """A stream whose tasks return these pieces."""
    job = SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=lambda: pieces))
    context = SimpleNamespace(parallelize=lambda *_: job)
    made = MicroBatches.__new__(MicroBatches)
    made._queue = BatchQueue(2, 1 << 20)
    spark = SimpleNamespace(sparkContext=context)
    made._session = SimpleNamespace(tasks=1, callbacks=Callbacks(), spark=spark)  # type: ignore[assignment]
    made._workers = SimpleNamespace(starting=False)  # type: ignore[assignment]
    made._sizer = BatchSizer(100, 1 << 20)
    made._begun = set()
    made._clock = FixedClock()  # type: ignore[assignment]
    made._tasks_began, made._warned = None, 0.0
    made._interleaved = False
    made._folder = None
    made._task = None  # type: ignore[assignment]
    return made


def accepted(pieces: list[ResultPiece], monkeypatch: pytest.MonkeyPatch, *, closed: bool = False) -> MicroBatches:
    """A stream that was given a batch of ten offsets."""
    monkeypatch.setattr(micro_batches, "task_ranges", lambda _: [TaskRange(0, 0, 10)])
    made = stream(pieces)
    if closed:
        made._queue.close()
    made._accept(None, 0)  # type: ignore[arg-type]
    return made


def pieces_of(*parts: Unread) -> list[ResultPiece]:
    return [ResultPiece(0, 0, number, content) for number, content in enumerate(in_pieces(parts))]


def reported(failure: BaseException) -> BaseException:
    """What the applier gets where Spark gets `Reported`."""
    made = stream([])
    with pytest.raises(Reported):
        made._accept(Frame(failure), 0)  # type: ignore[arg-type]
    with pytest.raises(BaseException) as raised:
        made._queue.get(0)
    return raised.value


def test_a_failed_batch_reaches_the_applier_in_full_and_spark_in_short() -> None:
    made = stream([])
    with pytest.raises(Reported) as raised:
        made._accept(Frame(FAILURE), 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError) as given:
        made._queue.get(0)
    assert given.value is FAILURE
    # Spark's expression takes some stack for every character of it.
    assert len("".join(traceback.format_exception(raised.value))) < 4_000


@pytest.mark.parametrize("failure", [Py4JNetworkError("closed"), ConnectionRefusedError(), BrokenPipeError()])
def test_a_jvm_that_does_not_answer_is_gone(failure: BaseException) -> None:
    assert isinstance(reported(failure), SparkGone)


def test_an_error_of_spark_s_job_is_one_of_the_brokers_with_its_cause() -> None:
    found = reported(Py4JError("An error\n\tat java\nCaused by: a\nCaused by: java.io.IOException: b"))
    assert isinstance(found, BrokerUnavailable)
    assert found.where["cause"] == "java.io.IOException: b"


def test_a_failed_task_ends_the_stream_with_its_error_whatever_others_have_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = ResultPiece(0, 5, FAILED, failure_as_bytes(NO_ROOM))
    monkeypatch.setattr(micro_batches, "task_ranges", lambda _: [TaskRange(0, 0, 10)])
    made = stream([*pieces_of(Unread(0, 0, 5, 1, 100)), failed])
    with pytest.raises(Reported):
        made._accept(None, 0)  # type: ignore[arg-type]
    with pytest.raises(ConfigError) as raised:
        made._queue.get(0)
    assert (raised.value.message, raised.value.hint, raised.value.where) == ("no room", "make some", {"folder": "/x"})


def test_what_tasks_have_made_is_queued_but_not_a_batch_without_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    part = Unread(0, 0, 10, 4, 500)
    batch = accepted(pieces_of(part), monkeypatch)._queue.get(0)
    assert batch is not None
    assert list(batch.parts) == [part]
    assert accepted([], monkeypatch)._queue.get(0) is None


@pytest.mark.parametrize(("folder", "lengths"), [(None, [20, 20, 20, 20, 20]), (Path("results"), [100])])
def test_a_task_on_a_cluster_reads_no_more_than_it_may_return(folder: Path | None, lengths: list[int]) -> None:
    """What it may not return the driver would read itself."""
    made: Any = stream([])
    made._folder = folder
    made._sizer.seen(10, 10 << 20)
    found: list[list[TaskRange]] = []
    job = SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=list))
    made._session.spark.sparkContext.parallelize = lambda tasks, _: found.extend(tasks) or job
    assert made._read([TaskRange(0, 0, 100)]) == []
    assert [sum(map(len, task)) for task in found] == lengths


def test_a_batch_of_a_stream_that_was_stopped_is_dropped_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert accepted(pieces_of(Unread(0, 0, 10, 4, 500)), monkeypatch, closed=True)._queue.get(0) is None


def test_a_stopped_stream_leaves_no_folder_of_results(tmp_path: Path) -> None:
    made: Any = stream([])
    made._folder, made._query = tmp_path / "results", SimpleNamespace(stop=lambda: None)
    made._folder.mkdir()
    (made._folder / "result").write_bytes(b"of a failed task")
    made.stop()
    assert list(tmp_path.iterdir()) == []


class Here:
    """Does in this process what a task does; fails at the second range."""

    kafka, topic = Kafka(bootstrap="127.0.0.1:1"), "t"

    def __init__(self) -> None:
        self.read: list[TaskRange] = []
        self.readers: list[RangeReader] = []

    def pieces(self, bounds: TaskRange, reader: RangeReader) -> Iterator[ResultPiece]:
        self.read.append(bounds)
        self.readers.append(reader)
        if bounds.partition:
            raise NO_ROOM
        yield from pieces_of(Unread(0, bounds.begin, bounds.end, 1, 100))


def test_while_workers_start_this_process_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = stream(pieces_of(Unread(0, 5, 10, 7, 100)))
    made._task, made._workers.starting = Here(), True
    for first in (0, 5):
        monkeypatch.setattr(micro_batches, "task_ranges", lambda _, first=first: [TaskRange(0, first, first + 5)])
        made._accept(None, 0)
        assert [part.messages for part in made._queue.get(0).parts] == [1 if made._workers.starting else 7]
        made._workers.starting = False
    assert made._task.read == [TaskRange(0, 0, 5, first=True, large=True)]


def test_what_this_process_cannot_read_ends_the_stream_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = stream([])
    made._task, made._workers.starting = Here(), True
    monkeypatch.setattr(micro_batches, "task_ranges", lambda _: [TaskRange(number, 0, 5) for number in range(4)])
    with pytest.raises(Reported):
        made._accept(None, 0)
    with pytest.raises(ConfigError) as raised:
        made._queue.get(0)
    assert raised.value is NO_ROOM
    assert [one.partition for one in made._task.read] == [0, 1]


def test_reading_here_ends_with_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = stream([])
    made._task, made._workers.starting = Here(), True
    monkeypatch.setattr(micro_batches, "task_ranges", lambda _: [TaskRange(0, 0, 5)])
    made._accept(None, 0)
    (reader,) = made._task.readers
    assert not reader._abandoned()
    made._queue.close()
    assert reader._abandoned()


class FixedClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def test_tasks_that_do_not_end_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    waits: list[int] = []
    made = stream([])
    made._query = SimpleNamespace(check=lambda: None)  # type: ignore[assignment]

    def collect() -> list[ResultPiece]:
        for seconds in (59, 1, 30, 31):
            made._clock.now += seconds  # type: ignore[attr-defined]
            assert made.next(0) is None
            waits.append(len(caplog.records))
        return []

    job = SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=collect))
    made._session.spark.sparkContext.parallelize = lambda *_: job  # type: ignore[method-assign]
    assert made._read([TaskRange(0, 0, 10)]) == []
    assert waits == [0, 1, 1, 2]
    made._clock.now += 1000  # type: ignore[attr-defined]
    assert made.next(0) is None
    assert len(caplog.records) == 2
    assert "tasks do not end" in caplog.messages[0]


def test_tasks_run_while_a_batch_is_read_and_not_after_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batches, "task_ranges", lambda _: [TaskRange(0, 0, 10)])
    made, found = stream([]), []

    def collect() -> list[ResultPiece]:
        found.append(made.tasks_run)
        raise FAILURE

    job = SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=collect))
    made._session.spark.sparkContext.parallelize = lambda *_: job  # type: ignore[assignment]
    with pytest.raises(Reported):
        made._accept(None, 0)  # type: ignore[arg-type]
    assert [*found, made.tasks_run] == [True, False]
