"""What the tests' Spark context (tests/unit/spark/test_range_task.py) promises of tasks, asked of Spark itself."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from threading import Event
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
from psutil import NoSuchProcess, Process
from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle

from connector.clock import SystemClock
from connector.kafka.message_batch import message_batch
from connector.spark.session import SparkRun
from connector.spark.stream.batch_sizer import BatchSizer
from connector.spark.stream.python_workers import PATIENCE, PythonWorkers
from connector.spark.stream.range_task import TaskRange
from connector.spark.stream.task_result import ResultPiece, in_pieces
from tests.support.clock import Slept
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


def test_peer_without_the_secret_is_refused_by_the_driver(spark: SparkRun) -> None:
    """Every user of the machine can connect to its port."""
    context = spark.spark.sparkContext
    jvm: Any = context._jvm
    port = int(context.getConf().get("spark.driver.port") or 0)
    conf = jvm.org.apache.spark.SparkConf(False)
    of_file = getattr(jvm.org.apache.spark.SecurityManager, "$lessinit$greater$default$3")()
    security = jvm.org.apache.spark.SecurityManager(conf, jvm.scala.Option.empty(), of_file)
    peer = jvm.org.apache.spark.rpc.RpcEnv.create("peer", "127.0.0.1", 0, conf, security, True)
    try:
        driver = jvm.org.apache.spark.rpc.RpcAddress("127.0.0.1", port)
        with pytest.raises(Py4JJavaError) as refused:
            peer.setupEndpointRef(driver, "HeartbeatReceiver")
        assert "Expected SaslMessage" in str(refused.value)
    finally:
        peer.shutdown()


@pytest.mark.usefixtures("spark")
def test_spark_leaves_the_handler_of_sigint() -> None:
    """Its own would call the JVM within a call that it interrupts."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def pieces(tasks: Iterable[list[TaskRange]]) -> Iterator[ResultPiece]:
    """As `Context` does: each offset is a message of ten bytes."""
    for one in (one for task in tasks for one in task):
        made = message_batch([one.partition] * len(one), range(one.begin, one.end), [bytes(10)] * len(one))
        for number, content in enumerate(in_pieces([made])):
            yield ResultPiece(one.partition, one.begin, number, content)


def test_each_task_gives_its_pieces_once(spark: SparkRun) -> None:
    tasks: Tasks = [[TaskRange(0, 0, 3), TaskRange(1, 5, 9)], [TaskRange(2, 1, 2)], [TaskRange(0, 3, 300)]]
    found = spark.spark.sparkContext.parallelize(tasks, len(tasks)).mapPartitions(pieces).collect()
    assert all(type(one) is ResultPiece for one in found)
    expected = Context().parallelize(tasks, len(tasks)).mapPartitions(None).collect()
    assert sorted(found) == sorted(expected)


def test_a_task_that_ends_while_its_session_stops_prints_nothing(
    spark: SparkRun, capfd: pytest.CaptureFixture[str]
) -> None:
    """Spark's scheduler and the task then log an error with its stack; their other errors are printed."""
    jvm: Any = spark.spark.sparkContext._jvm
    scheduler = jvm.org.slf4j.LoggerFactory.getLogger("org.apache.spark.scheduler.TaskSchedulerImpl")
    task = jvm.org.slf4j.LoggerFactory.getLogger("org.apache.spark.TaskContextImpl")
    scheduler.error("Exception in statusUpdate", jvm.java.lang.IllegalStateException("stopped"))
    task.error("Error in TaskCompletionListener", jvm.java.lang.IllegalStateException("broadcast_0 does not exist"))
    scheduler.error("Lost executor 1")
    printed = ""
    started = monotonic()
    while not printed and monotonic() - started < PATIENCE:
        sleep(0.05)
        printed += capfd.readouterr().err
    assert [line.partition(" spark ")[2] for line in printed.splitlines()] == [
        "ERROR TaskSchedulerImpl: Lost executor 1"
    ]


def is_worker(process: Process) -> bool:
    """True for Spark's daemon, and what it has forked; one that has just ended is none."""
    with suppress(NoSuchProcess):
        return "connector.spark.stream.worker" in process.cmdline()
    return False


def test_workers_start_in_the_background_and_then_run_tasks(spark: SparkRun) -> None:
    workers = PythonWorkers(spark, SystemClock(), pieces)
    assert not workers.starting
    workers.start()
    assert workers.starting
    ended(workers)
    assert sum(map(is_worker, Process().children(recursive=True))) >= 2


def test_workers_that_cannot_start_are_no_error() -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("no room")

    workers = PythonWorkers(of(refuse), SystemClock(), pieces)
    workers.start()
    ended(workers)


def test_workers_that_take_too_long_are_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    clock, released = Slept(), Event()
    workers = PythonWorkers(of(lambda *_: released.wait(60)), clock, pieces)
    workers.start()
    assert workers.starting
    clock.sleep(PATIENCE)
    assert not workers.starting
    assert [record.message for record in caplog.records] == ["Spark's Python workers do not start"]
    released.set()


def test_workers_of_a_cluster_are_not_started() -> None:
    workers = PythonWorkers(of(lambda *_: None, slots=0), SystemClock(), pieces)
    workers.start()
    assert not workers.starting


def of(parallelize: Callable[..., object], slots: int = 2) -> Any:
    """A session whose context does this."""
    context = SimpleNamespace(parallelize=parallelize)
    return SimpleNamespace(slots=slots, spark=SimpleNamespace(sparkContext=context))


def ended(workers: PythonWorkers) -> None:
    """Wait until they have started, or cannot."""
    until = monotonic() + 60
    while workers.starting and monotonic() < until:
        sleep(0.05)
    assert not workers.starting


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
