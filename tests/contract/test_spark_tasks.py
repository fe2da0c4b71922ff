"""What the tests' Spark context (tests/unit/spark/test_range_task.py) promises of tasks, asked of Spark itself."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator

import pytest
from pyspark import cloudpickle

from connector.kafka.arrow_reader import message_batch
from connector.spark.session import SparkRun
from connector.spark.stream.batch_sizer import BatchSizer
from connector.spark.stream.parcel import Piece, in_pieces
from connector.spark.stream.range_task import TaskRange
from tests.support.spark import end_jvm, session
from tests.unit.spark.test_range_task import Context, Steady, Tasks, offsets, read, stream

LEAST = {"spark.driver.maxResultSize": "1m"}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # another test's session may have left Spark's own
    with session(tmp_path_factory.mktemp("spark"), master="local[2]", spark=LEAST) as started:
        yield started
    signal.signal(signal.SIGINT, before)
    end_jvm()  # later sessions would inherit the setting


@pytest.fixture(autouse=True)
def sent_by_value() -> Iterator[None]:
    """Spark's workers may not find the tests."""
    here = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(here)  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(here)  # type: ignore[no-untyped-call]


@pytest.mark.usefixtures("spark")
def test_spark_leaves_the_handler_of_sigint() -> None:
    """Its own would call the JVM within a call that it interrupts."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def pieces(tasks: Iterable[list[TaskRange]]) -> Iterator[Piece]:
    """As `Context` does: each offset is a message of ten bytes."""
    for one in (one for task in tasks for one in task):
        made = message_batch([one.partition] * len(one), range(one.begin, one.end), [bytes(10)] * len(one))
        for number, content in enumerate(in_pieces([made])):
            yield Piece(one.partition, one.begin, number, content)


def test_each_task_gives_its_pieces_once(spark: SparkRun) -> None:
    tasks: Tasks = [[TaskRange(0, 0, 3), TaskRange(1, 5, 9)], [TaskRange(2, 1, 2)], [TaskRange(0, 3, 300)]]
    found = spark.spark.sparkContext.parallelize(tasks, len(tasks)).mapPartitions(pieces).collect()
    assert all(type(one) is Piece for one in found)
    expected = Context().parallelize(tasks, len(tasks)).mapPartitions(None).collect()
    assert sorted(found) == sorted(expected)


def test_no_task_is_refused(spark: SparkRun) -> None:
    for context in (Context(), spark.spark.sparkContext):
        with pytest.raises(ZeroDivisionError):
            context.parallelize([], 0).mapPartitions(pieces).collect()


@pytest.mark.parametrize("count", [30, 100_000])
def test_slices_have_each_offset_once_and_in_order(spark: SparkRun, count: int) -> None:
    """A hundred thousand messages do not fit into `LEAST`: they are read in smaller slices."""
    bounds = [TaskRange(0, 4, 4 + count, first=True), TaskRange(3, 0, 5)]
    reading = stream(Context(), Steady(7, 1) if count == 30 else BatchSizer(count + 5, 1 << 24))
    reading._session = spark
    reading._task = pieces  # type: ignore[assignment]
    batches = list(reading._slices(bounds))
    assert len(batches) > 1
    found = read(batches)
    for one in bounds:
        assert [at for at in found if at[0] == one.partition] == offsets([one])
    assert len(found) == len(offsets(bounds))
