"""Micro-batch and continuous mode on a real Kafka and Spark, and the change from one to the other."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys
import termios
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark import SparkContext

from connector.clock import SystemClock
from connector.config.apply import Apply
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import BrokerUnavailable, ConfigError, LogDamaged
from connector.kafka.consumer import KafkaConsumer, KafkaMessage
from connector.kafka.ends import partition_bounds
from connector.kafka.handshake import EARLIEST
from connector.kafka.large_messages import LARGE, LargeMessages
from connector.log.compact.segment import Segment
from connector.spark import checkpoint
from connector.spark import settings as spark_settings
from connector.spark.session import SparkRun
from connector.spark.stream import load_monitor
from connector.spark.stream.batch_sizer import BatchSizer
from connector.spark.stream.continuous import Continuous
from connector.spark.stream.micro_batches import MicroBatches
from connector.spark.stream.parts import Batch, begin_of, partition_of
from connector.spark.stream.range_task import Compaction
from connector.spark.stream.socket_sink import SocketSink
from connector.spark.stream.stream import LogStream, Mode
from tests.support.clock import PATIENCE
from tests.support.fragments import change, load_record, record
from tests.support.log_writer import LogWriter
from tests.support.producing import until
from tests.support.servers.environment import Broker
from tests.support.spark import QUEUE_BATCHES, READERS, Reader, continuously, in_batches, session

pytestmark = pytest.mark.servers

CLOCK = SystemClock()
ROW_OF_LOAD = "of the load "
DROP = Continuous._drop


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
    with session(tmp_path_factory.mktemp("spark"), master="local[3]") as started:
        yield started


@pytest.fixture
def config(kafka_broker: Broker, tmp_path: Path) -> Config:
    return Config(
        service=f"s{uuid.uuid4().hex[:10]}",
        kafka=Kafka(bootstrap=kafka_broker.bootstrap, retries=5),
        apply=Apply(checkpoint_dir=tmp_path / "spark", batch_messages=50),
    )


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> Reader:
    chosen: Reader = request.param
    return chosen


class Log:
    """A topic whose messages are numbers."""

    def __init__(self, config: Config, partitions: int = 1) -> None:
        self.writer = LogWriter(config, partitions=partitions)
        self.partitions = partitions
        self.sent = 0

    def add(self, count: int, *, abort: bool = False, size: int = 0) -> None:
        values = [str(self.sent + n).encode().ljust(size, b".") for n in range(count)]
        for partition in range(self.partitions):
            self.writer.raw(*values[partition :: self.partitions], partition=partition, abort=abort)
        self.sent += 0 if abort else count


def numbers(batches: list[Batch], partitions: int = 1) -> list[list[int]]:
    """What was read of each partition, in the order in which it came."""
    found: list[list[int]] = [[] for _ in range(partitions)]
    for batch in batches:
        for part in sorted(batch.parts, key=lambda part: (partition_of(part), begin_of(part))):
            assert isinstance(part, pa.RecordBatch)
            number = part["partition"][0].as_py()
            assert part["offset"].to_pylist() == sorted(part["offset"].to_pylist())
            found[number] += [int(value.rstrip(b".")) for value in part["value"].to_pylist()]
    return found


def parts_of(batches: list[Batch]) -> list[pa.RecordBatch]:
    """The parts of batches that are messages alone."""
    parts = [part for batch in batches for part in batch.parts]
    assert all(isinstance(part, pa.RecordBatch) for part in parts)
    return [part for part in parts if isinstance(part, pa.RecordBatch)]


def read(stream: MicroBatches | Continuous | LogStream, count: int, seconds: float = 60) -> list[Batch]:
    """So many messages; then no more may come at once."""
    found: list[Batch] = []

    def enough() -> bool:
        batch = stream.next(0.2)
        found.extend([] if batch is None else [batch])
        return sum(each.messages for each in found) >= count

    until(enough, seconds)
    assert sum(each.messages for each in found) == count
    return found


def test_only_committed_messages_are_read_in_order(config: Config, spark: SparkRun, reader: Reader) -> None:
    log = Log(config, partitions=2)
    log.add(200)
    log.add(50, abort=True)
    stream = reader(spark, config.kafka, config.topic, {0: EARLIEST, 1: EARLIEST})
    try:
        found = read(stream, 200)
        for size in (1, 70_000, 1, 5):
            log.add(10, abort=True)
            log.add(20, size=size)
            found += read(stream, 20)
    finally:
        stream.stop()
    assert numbers(found, 2) == [list(range(0, 280, 2)), list(range(1, 280, 2))]


def test_a_task_of_the_next_epoch_goes_on_after_the_last_one(
    config: Config, spark: SparkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_settings, "EPOCH", "1 second")
    ended: list[Any] = []
    monkeypatch.setattr(Continuous, "_drop", lambda stream, one: (ended.append(one), DROP(stream, one)))
    log = Log(config, partitions=2)
    stream = continuously(spark, config.kafka, config.topic, {0: EARLIEST, 1: EARLIEST})
    found: list[Batch] = []
    end = CLOCK.monotonic() + PATIENCE
    try:
        while len(ended) <= 4:  # of more than two epochs
            assert CLOCK.monotonic() < end
            log.add(10)
            found += read(stream, 10)
    finally:
        stream.stop()
    assert numbers(found, 2) == [list(range(0, log.sent, 2)), list(range(1, log.sent, 2))]


def test_a_temporary_folder_with_a_long_path_is_refused(
    config: Config, spark: SparkRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Log(config)
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with pytest.raises(ConfigError) as refused:
        continuously(spark, config.kafka, config.topic, {0: EARLIEST})
    assert refused.value.where == {"option": "TMPDIR"}
    assert not list(deep.iterdir())


def test_a_setting_that_spark_refuses_is_a_configuration_error(config: Config, spark: SparkRun) -> None:
    wrong = config.kafka.model_copy(update={"spark_properties": {"auto.offset.reset": "latest"}})
    with pytest.raises(ConfigError) as refused:
        continuously(spark, wrong, config.topic, {0: EARLIEST})
    assert "kafka.spark_properties" in refused.value.hint


def test_full_disk_raises_os_error(
    config: Config, spark: SparkRun, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint, "fresh", full)
    with pytest.raises(OSError) as full_disk:
        reader(spark, config.kafka, config.topic, {0: EARLIEST})
    assert full_disk.value.errno == errno.ENOSPC


def test_a_stream_begins_at_its_offsets(config: Config, spark: SparkRun, reader: Reader) -> None:
    log = Log(config)
    log.add(100)
    stream = reader(spark, config.kafka, config.topic, {0: 40})
    try:
        assert numbers(read(stream, 60)) == [list(range(40, 100))]
    finally:
        stream.stop()


def test_a_stream_that_has_ended_leaves_no_connection_of_the_jvm(config: Config, spark: SparkRun) -> None:
    """Which py4j has one of for each query, with a thread."""
    log = Log(config)
    log.add(10)
    for _ in range(2):
        stream = in_batches(spark, config.kafka, config.topic, {0: EARLIEST})
        try:
            read(stream, 10)
            assert called_by_the_jvm()
        finally:
            stream.stop()
        until(lambda: not called_by_the_jvm())


def called_by_the_jvm() -> int:
    """The number of connections over which the JVM calls this process."""
    port = SparkContext._gateway._callback_server.get_listening_port()  # type: ignore[union-attr]
    found = psutil.Process().net_connections("tcp")
    return sum(one.laddr.port == port and one.status == psutil.CONN_ESTABLISHED for one in found)


def test_a_large_message_comes_without_its_value(config: Config, spark: SparkRun) -> None:
    log = Log(config)
    for size in (1, LARGE, LARGE + 1, 1):
        log.add(1, size=size)
    stream = continuously(spark, config.kafka, config.topic, {0: EARLIEST})
    try:
        found = [value for part in parts_of(read(stream, 4)) for value in part["value"].to_pylist()]
    finally:
        stream.stop()
    assert [value and len(value) for value in found] == [1, LARGE, None, 1]


def test_large_messages_near_and_far_are_fetched(config: Config) -> None:
    log = Log(config, partitions=2)
    log.add(20, size=LARGE + 1)  # ten a partition
    log.add(200)
    log.add(2, abort=True)
    log.add(20, size=LARGE + 1)
    with LargeMessages(config.kafka, config.topic) as large:
        for partition in (0, 1, 0):
            wanted = [0, 1, 2, 5, 9, 105, 115, 117]  # between the last three: a commit, and what was aborted
            batches = [large.fetch(partition, offset) for offset in wanted]
            assert [batch["offset"].to_pylist() for batch in batches] == [[offset] for offset in wanted]
            assert all(batch["partition"].to_pylist() == [partition] for batch in batches)
            values = [int(batch["value"][0].as_py().rstrip(b".")) for batch in batches]
            assert values[:5] == [partition + 2 * offset for offset in wanted[:5]]
            assert values[6:] == [220 + partition + 2, 220 + partition + 6]


def test_a_deleted_large_message_is_damage(config: Config, kafka_broker: Broker) -> None:
    log = Log(config)
    log.add(10, size=LARGE + 1)
    with LargeMessages(config.kafka, config.topic) as large:
        large.fetch(0, 2)
        with pytest.raises(LogDamaged) as beyond:
            large.fetch(0, 100)
        assert beyond.value.where["at"] == f"{config.topic}-0@100"
        admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
        for deleted in admin.delete_records([TopicPartition(config.topic, 0, 5)]).values():
            deleted.result(10)
        with pytest.raises(LogDamaged) as deleted_message:
            large.fetch(0, 2)
        assert deleted_message.value.where["at"] == f"{config.topic}-0@2"


def waiting(stream: MicroBatches | Continuous) -> int:
    """The bytes that wait for the applier; of batches: once as many wait as the queue takes."""
    if isinstance(stream, MicroBatches):
        batches = list(stream._queue._waiting)
        return sum(batch.size for batch in batches) if len(batches) >= QUEUE_BATCHES else 0
    stream.ready()
    return sum(
        int.from_bytes(fcntl.ioctl(connection, termios.FIONREAD, bytes(4)), sys.byteorder)
        for connection in stream._connections
    )


def test_a_slow_applier_holds_spark_back_and_loses_nothing(config: Config, spark: SparkRun, reader: Reader) -> None:
    log = Log(config)
    log.add(600, size=20_000)
    stream = reader(spark, config.kafka, config.topic, {0: EARLIEST})

    def steady() -> bool:
        before = waiting(stream)
        CLOCK.sleep(0.5)
        return 0 < before == waiting(stream)

    try:
        until(steady)
        assert waiting(stream) < 600 * 20_000 / 2
        found = read(stream, 600)
    finally:
        stream.stop()
    assert numbers(found) == [list(range(600))]


def test_a_worker_without_room_ends_the_stream_with_the_remedy(config: Config, spark: SparkRun) -> None:
    log = Log(config)
    log.add(10)
    stream = in_batches(spark, config.kafka, config.topic, {0: EARLIEST})
    try:
        assert numbers(read(stream, 10)) == [list(range(10))]
        folder = stream._folder
        assert folder is not None
        folder.rename(folder.with_suffix(".gone"))
        log.add(10)
        with pytest.raises(ConfigError) as refused:
            until(lambda: stream.next(0.2) is not None)
        assert "apply.checkpoint_dir" in refused.value.hint
        assert refused.value.where == {"folder": str(folder)}
    finally:
        stream.stop()


def test_a_stream_from_deleted_offsets_ends(config: Config, spark: SparkRun, reader: Reader) -> None:
    log = Log(config)
    log.add(10)
    stream = reader(spark, config.kafka, config.topic, {0: 5_000})
    try:
        with pytest.raises(BrokerUnavailable) as ended:
            until(lambda: stream.next(0.2) is not None)
        assert ended.value.where["cause"]
    finally:
        stream.stop()


def test_each_mode_takes_over_from_the_other_without_a_gap_or_a_repeat(
    config: Config, spark: SparkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_monitor, "IDLE_MESSAGES", 200)
    log = Log(config, partitions=2)
    log.add(100)
    with LogStream(
        spark, config, {0: EARLIEST, 1: EARLIEST}, CLOCK, load_monitor.LoadMonitor(CLOCK.monotonic())
    ) as reading:
        found = read(reading, 100)
        for count, kind in ((2, Mode.CONTINUOUS), (2_000, Mode.MICRO_BATCH), (2, Mode.CONTINUOUS)):
            until(lambda: comes(log, reading, found, count) and reading.mode is kind)  # noqa: B023
    assert numbers(found, 2) == [list(range(0, log.sent, 2)), list(range(1, log.sent, 2))]


def with_loads(config: Config) -> list[int]:
    """Write a log of which every second event is of a load for `lake`, one in several fragments; return the sizes."""
    writer = LogWriter(config)
    writer.online()
    rows = change("read", [(None, [n, ROW_OF_LOAD * 100]) for n in range(5)], table="loaded")
    records = [record(n, [change("insert", [(None, [n, "of the stream"])])]) for n in range(0, 60, 2)]
    for n in range(1, 60, 2):
        fragments = 4 if n == 31 else 1
        records += [
            load_record(n, [rows], targets=("lake",), fragno=at, rows=5 * (at + 1), last_frag=at == fragments - 1)
            for at in range(fragments)
        ]
    writer.events(sorted(records, key=itemgetter("seqno")))
    with closing(KafkaConsumer(config.kafka, f"{config.topic}.sizes")) as consumer:
        consumer.assign(config.topic, {0: 0})
        found: list[int] = []
        while len(found) < len(records) + 1:
            some = [one.value for one in consumer.drain(PATIENCE) if isinstance(one, KafkaMessage)]
            found += [len(value or b"") for value in some]
    return found


@pytest.mark.parametrize("target", ["shelf", "lake"])
@pytest.mark.parametrize("mode", ["segments", "messages", "continuous"])
def test_tasks_leave_out_the_rows_of_loads_for_other_targets(
    config: Config, spark: SparkRun, target: str, mode: str
) -> None:
    sizes = with_loads(config)
    stream: MicroBatches | Continuous
    if mode == "continuous":
        stream = Continuous(spark, config.kafka, topic=config.topic, offsets={0: EARLIEST}, clock=CLOCK, target=target)
    else:
        stream = MicroBatches(
            spark,
            config.kafka,
            topic=config.topic,
            offsets={0: EARLIEST},
            sizer=BatchSizer(7, 1 << 20),
            queue_batches=QUEUE_BATCHES,
            interleaved=False,
            compaction=Compaction(compact=mode == "segments", target=target),
        )
    try:
        batches = read(stream, len(sizes))
    finally:
        stream.stop()
    parts = [part for batch in batches for part in batch.parts]
    messages = [value for part in parts if isinstance(part, pa.RecordBatch) for value in part["value"].to_pylist()]
    rows = Counter[str]()
    for segment in (part for part in parts if isinstance(part, Segment)):
        rows.update({net.layout.name.table: len(net) for net in segment.changes})
    in_messages = sum(value.count(ROW_OF_LOAD.encode()) for value in messages)
    assert (rows["loaded"] + in_messages > 0) is (target == "lake")
    assert (len(messages) == len(sizes)) is (mode != "segments")
    assert rows["orders"] == 30 - sum(b"of the stream" in value for value in messages)
    # What decides the mode, and how much is read at once, is what lies in the log.
    assert sum(batch.size for batch in batches) >= 0.9 * sum(sizes)


def test_partitions_that_are_left_out_are_read_later(config: Config, spark: SparkRun) -> None:
    log = Log(config, partitions=2)
    log.add(100)
    with LogStream(
        spark, config, dict.fromkeys((0, 1), EARLIEST), CLOCK, load_monitor.LoadMonitor(CLOCK.monotonic())
    ) as reading:
        found = read(reading, 100)
        reading.leave_out(frozenset({1}))
        log.add(100)
        some = read(reading, 50)
        assert set(map(partition_of, parts_of(some))) == {0}
        reading.leave_out(frozenset())
        found += some + read(reading, 50)
    assert numbers(found, 2) == [list(range(0, 200, 2)), list(range(1, 200, 2))]


def test_a_continuous_query_that_fails_leaves_micro_batches(
    config: Config, spark: SparkRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(load_monitor, "WINDOWS", 1)
    monkeypatch.setattr(
        "connector.spark.stream.continuous.SocketSink", lambda address, target: SocketSink(address + ".nowhere", target)
    )
    log = Log(config)
    log.add(10)
    load = load_monitor.LoadMonitor(CLOCK.monotonic())
    with LogStream(spark, config, {0: EARLIEST}, CLOCK, load) as reading:
        found = read(reading, 10)
        until(lambda: comes(log, reading, found, 2) and "continuous mode could not start" in caplog.text)
        assert comes(log, reading, found, 20)
        assert reading.mode is Mode.MICRO_BATCH
        assert not load.idle
    assert numbers(found) == [list(range(log.sent))]


@pytest.mark.parametrize(
    ("largest", "partitions", "fits"), [(128 << 20, 1, False), (4 << 20, 1, True), (4 << 20, 2, False)]
)
def test_messages_too_large_for_the_heap_leave_micro_batches_alone(
    config: Config,
    spark: SparkRun,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    largest: int,
    partitions: int,
    fits: bool,
) -> None:
    monkeypatch.setattr(load_monitor, "WINDOWS", 1)
    log = Log(config, partitions=partitions)
    log.add(10)
    offsets = dict.fromkeys(range(partitions), EARLIEST)
    load = load_monitor.LoadMonitor(CLOCK.monotonic())
    with LogStream(spark, config, offsets, CLOCK, load, largest=largest) as reading:
        read(reading, 10)
        until(lambda: reading.next(0.1) is None and load.idle)
        assert reading.continuous_possible == fits
        reading.next(0.1)
        assert (reading.mode is Mode.MICRO_BATCH) != fits
    assert ("raise apply.heap" in caplog.text) != fits


@pytest.mark.long
def test_messages_of_the_topic_s_limit_fit_into_the_heap(config: Config, spark: SparkRun) -> None:
    """A row of 100 MB and more in its parts; as one message of so much it ended the JVM."""
    log = Log(config, partitions=2)
    stream = continuously(spark, config.kafka, config.topic, {0: EARLIEST, 1: EARLIEST})
    try:
        for _ in range(4):
            log.add(16, size=config.kafka.max_message_bytes)
        found = read(stream, 64, 180)
    finally:
        stream.stop()
    assert [value for part in parts_of(found) for value in part["value"].to_pylist()] == [None] * 64


def comes(log: Log, reading: LogStream, found: list[Batch], count: int) -> bool:
    """So many messages are written and read."""
    log.add(count)
    found += read(reading, count)
    CLOCK.sleep(0.05)
    return True


def test_a_killed_worker_ends_the_stream_and_the_next_one_goes_on_after_it(
    config: Config, spark: SparkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(config)
    log.add(10)
    stream = continuously(spark, config.kafka, config.topic, {0: EARLIEST})
    try:
        found = read(stream, 10)
        before = workers()
        assert before
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        with monkeypatch.context() as short, pytest.raises(BrokerUnavailable) as ended:
            short.setattr("connector.spark.stream.continuous.PATIENCE", 2.0)
            until(lambda: stream.next(0.2) is not None)
        assert ended.value.where.keys() & {"cause", "partitions"}
    finally:
        stream.stop()
    log.add(10)
    stream = continuously(spark, config.kafka, config.topic, {0: 11})
    try:
        found += read(stream, 10)
    finally:
        stream.stop()
    assert numbers(found) == [list(range(20))]


def workers() -> list[int]:
    """Python workers of this process's Spark: grandchildren, by way of its JVM and a daemon."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])

    def below(pid: int) -> set[int]:
        children = {child for child, parent in parents.items() if parent == pid}
        return children.union(*map(below, children)) if children else set()

    def named(pid: int) -> bool:
        with suppress(FileNotFoundError, ProcessLookupError):
            return b"pyspark.worker" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
        return False

    daemons = [pid for pid in below(os.getpid()) if named(pid)]
    return [pid for pid in daemons if parents[pid] in daemons]


def test_the_lag_behind_given_offsets_is_asked_of_the_brokers(config: Config, kafka_broker: Broker) -> None:
    log = Log(config, partitions=2)
    log.add(20)
    end = KafkaConsumer(config.kafka, f"{config.topic}.end")
    try:
        # Ten messages and the transaction's marker on each partition.
        assert end.lag(config.topic, {0: EARLIEST, 1: 4}) == 11 + 7
        assert end.lag(config.topic, {0: 11, 1: 11}) == 0
        kafka_broker.kill()
        with pytest.raises(BrokerUnavailable) as refused:
            end.lag(config.topic, {0: 11, 1: 11}, 2.0)
        assert refused.value.where["partition"] == f"{config.topic}-0"
    finally:
        kafka_broker.start()
        end.close()


def leads(config: Config) -> bool:
    """True once a broker leads the log's partitions: one that has just started says that it does not."""
    try:
        partition_bounds(config)
    except BrokerUnavailable:
        return False
    return True


@pytest.mark.long
def test_brokers_that_stay_away_end_the_stream_in_either_mode(
    config: Config, spark: SparkRun, kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connector.spark.stream.stream.PATIENCE", 2.0)
    quick = config.kafka.model_copy(
        update={"spark_properties": {"request.timeout.ms": "1000", "default.api.timeout.ms": "2000"}}
    )
    impatient = config.model_copy(update={"kafka": quick})
    log = Log(config)
    log.add(5)
    for windows, kind in ((10_000, Mode.MICRO_BATCH), (1, Mode.CONTINUOUS)):
        monkeypatch.setattr(load_monitor, "WINDOWS", windows)
        with LogStream(spark, impatient, {0: EARLIEST}, CLOCK, load_monitor.LoadMonitor(CLOCK.monotonic())) as reading:
            read(reading, 5)
            until(lambda kind=kind, reading=reading: reading.next(0.1) is None and reading.mode is kind)
            kafka_broker.kill()
            try:
                with pytest.raises(BrokerUnavailable):
                    until(lambda reading=reading: reading.next(0.2) is not None)
            finally:
                kafka_broker.start()
                until(lambda: leads(config))
