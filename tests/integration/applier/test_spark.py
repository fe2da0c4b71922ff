"""The log as DataFrames, with a real Kafka and a real Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import OFFSET_END, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from connector import failpoints as faults
from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import BrokerUnavailable, ConfigError, LogDamaged
from connector.kafka.log_reader import LogReader
from connector.kafka.records import definition_messages
from connector.log.format.fragment_reader import header_of
from connector.log.ids import Seqno
from connector.log.reading.offset_range import PART, WHOLE, OffsetRangeReader
from connector.log.transaction.definition import Definitions, TableDefinition
from connector.log.transaction.load import Part
from connector.spark import read_thl, stream_thl, typed
from connector.spark.debezium.rows import EventRows, RowsOptions
from connector.spark.source.ends import Ends
from connector.spark.source.offset import LogOffset
from connector.spark.source.typed import layout_in, layout_of
from spark_apps.changes import changes as changes_app
from tests.support.fragments import change, column, in_parts, load_record, record, statement
from tests.support.log_writer import LogWriter
from tests.support.long import long
from tests.support.servers.environment import Broker
from tests.support.spark import end_jvm


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    end_jvm()  # an applier's, whose settings are for an applier
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.master": "local[2]", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "512m", "spark.local.dir": str(folder),
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.sql.warehouse.dir": str(folder), "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.shuffle.partitions": "2",
    }  # fmt: skip
    session = SparkSession.builder.appName("tests").config(map=settings).getOrCreate()
    yield session
    session.stop()
    end_jvm()


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    return Config(service=f"s{uuid.uuid4().hex[:10]}", kafka=Kafka(bootstrap=kafka_broker.bootstrap))


def event(seqno: int, *ids: int, prev: int | None = None, **more: Any) -> dict[str, Any]:
    prev = seqno - 1 if prev is None else prev
    return record(seqno, [change("insert", [(None, [n, "x"]) for n in ids])], prev_seqno=prev, **more)


def begun(seqno: int, *ids: int, prev: int) -> dict[str, Any]:
    """The first fragment of an event that has more."""
    more = {"last_frag": False, "event_id": None, "commit_time": None, "outcome": None}
    return event(seqno, *ids, prev=prev, **more)


def ended(seqno: int, *ids: int, prev: int, fragno: int, rows: int) -> dict[str, Any]:
    return event(seqno, *ids, prev=prev, fragno=fragno, rows=rows)


def found(frame: DataFrame) -> list[tuple[int, int, int]]:
    """seqno, number of the change, id."""
    rows = frame.select("seqno", "change", "after").collect()
    return sorted((row["seqno"], row["change"], json.loads(row["after"])["id"]) for row in rows)


@pytest.mark.parametrize("split", [50_000, *long(3)])
def test_rows_of_finished_events_of_all_partitions_are_read(config: Config, spark: SparkSession, split: int) -> None:
    log = LogWriter(config, partitions=2)
    log.online()
    log.events([event(0, 1), event(2, 3, prev=0)], partition=0)
    log.events([event(1, 2, prev=-1)], partition=1)
    log.events([event(3, 99, prev=2)], partition=0, abort=True)
    log.events([begun(3, 98, prev=1)], partition=1)
    log.online()  # gives 3 up
    log.events([begun(3, 4, prev=2), ended(3, 5, 6, prev=2, fragno=1, rows=3)], partition=0)
    log.events([event(4, 7, prev=1)], partition=1)
    void = {"outcome": "void"}
    log.events([event(5, 96, prev=3, **void), begun(6, 95, prev=5)], partition=0)
    log.events([ended(6, 94, prev=5, fragno=1, rows=2) | void], partition=0)
    log.events([begun(7, 97, prev=4)], partition=1)
    everything = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 4), (3, 1, 5), (3, 2, 6), (4, 0, 7)]
    assert found(read_thl(spark, config, splitMessages=split)) == everything
    if split == 3:
        assert found(read_thl(spark, config, splitMessages=split, startingSeqno=2, endingSeqno=3)) == everything[2:6]


def test_event_larger_than_the_buffer_is_read(config: Config, spark: SparkSession) -> None:
    log = LogWriter(config)
    log.online()
    text, count = "y" * 1_000_000, 24

    def part(n: int) -> dict[str, Any]:
        ends = {} if n == count - 1 else {"last_frag": False, "event_id": None, "commit_time": None, "outcome": None}
        return record(1, [change("insert", [(None, [n, text])])], fragno=n, rows=n + 1, prev_seqno=0, **ends)

    log.events([event(0, 1)])
    log.events([part(n) for n in range(count)])
    *some, last = in_parts(change("insert", [(None, [2, text])]), 3)
    unfinished = {"event_id": None, "commit_time": None, "outcome": None, "last_frag": False, "rows": 0}
    parts = [record(2, [one], fragno=n, prev_seqno=1, **unfinished) for n, one in enumerate(some)]
    log.events([*parts, record(2, [last], fragno=2, rows=1, prev_seqno=1)])
    frame = read_thl(spark, config, splitMessages=10).selectExpr("seqno", "change", "length(after) AS size", "event_id")
    rows = sorted(
        (row["seqno"], row["change"], row["size"] > 1_000_000, row["event_id"][-3:]) for row in frame.collect()
    )
    assert rows == [(0, 0, False, "0;7"), *((1, n, True, "1;7") for n in range(count)), (2, 0, True, "2;7")]


def test_a_stream_goes_on_from_its_checkpoint_and_each_event_comes_once(
    config: Config, spark: SparkSession, tmp_path: Path
) -> None:
    log = LogWriter(config)
    log.online()

    def run() -> list[tuple[int, int, int]]:
        stream = stream_thl(spark, config, splitMessages=2)
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
        assert query.awaitTermination(120)
        assert query.exception() is None
        return found(spark.read.parquet(str(tmp_path / "out")))

    log.events([event(0, 1), event(1, 2), begun(2, 3, prev=1)])
    assert run() == [(0, 0, 1), (1, 0, 2)]
    log.events([ended(2, 4, prev=1, fragno=1, rows=2), event(3, 5), begun(4, 96, prev=3)])
    assert run() == [(0, 0, 1), (1, 0, 2), (2, 0, 3), (2, 1, 4), (3, 0, 5)]
    log.online()
    log.events([event(4, 6)])
    assert run() == [(0, 0, 1), (1, 0, 2), (2, 0, 3), (2, 1, 4), (3, 0, 5), (4, 0, 6)]


def test_stream_refuses_another_log(config: Config, spark: SparkSession, tmp_path: Path) -> None:
    other = config.model_copy(update={"service": config.service + "x"})
    for one, log_id in ((config, "a" * 32), (other, "b" * 32)):
        log = LogWriter(one, log_id=log_id)
        log.online()
        log.events([event(0, 1), event(1, 2)])

    def run(one: Config) -> None:
        stream = stream_thl(spark, one).writeStream.format("noop")
        once = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        once.start().awaitTermination(120)

    run(config)
    log.events([event(2, 3)])  # so that there is something to read
    with pytest.raises(StreamingQueryException, match="HistoriesDiffer"):
        run(other)


def test_missing_event_ends_the_query(config: Config, spark: SparkSession) -> None:
    log = LogWriter(config)
    log.online()
    log.events([event(0, 1)])
    log.events([event(2, 3, prev=1)])
    with pytest.raises(Exception, match="LogDamaged"):
        read_thl(spark, config).collect()


def test_typed_images_have_the_tables_types(config: Config, spark: SparkSession) -> None:
    columns = [
        column("id", "bigint") | {"unsigned": True}, column("d", "decimal(20,5)"), column("w", "decimal(65,30)"),
        column("t", "datetime(6)"), column("z", "timestamp(3)"), column("b", "varbinary(9)"), column("f", "float"),
        column("day", "date"), column("j", "json"), column("h", "time(6)"),
    ]  # fmt: skip
    values = [str(2**64 - 1), "-123456789012345.54321", "1." + "2" * 30, "2024-02-29 23:59:59.999999",
              "2024-03-31 01:30:00.125", b"\0\xff", 0.5, "1000-01-01", '{"a": 1.50}', "-838:59:59.000000"]  # fmt: skip
    log = LogWriter(config)
    log.online()
    one = change("insert", [(None, values)]) | {"columns": columns}
    log.events([record(0, [one]), event(1, 5)])
    zero = change("insert", [(None, [*values[:7], "0000-00-00", *values[8:]])]) | {"columns": columns, "table": "zero"}
    log.events([record(2, [one | {"table": "other"}]), record(3, [zero])])
    changes = read_thl(spark, config, layout=True)
    layout = layout_in(changes.where("seqno < 1"), "shop", "orders")
    with pytest.raises(ConfigError) as unknown:
        layout_of(config, "shop", "orders")
    assert "layout_in" in unknown.value.hint
    producer = Producer({"bootstrap.servers": config.kafka.bootstrap})
    definition = TableDefinition(layout, "utf8mb4")
    for key, value in definition_messages(Definitions({layout.name: definition})):
        producer.produce(config.control_topic, value, key)
    producer.flush()
    assert layout_of(config, "shop", "orders") == layout
    rows = typed(changes.where("seqno < 1"), layout).selectExpr(
        "before", "after.*", "CAST(unix_micros(after.z) AS BIGINT) AS micros"
    )
    (row,) = rows.collect()
    assert row["before"] is None
    assert row["id"] == Decimal(2**64 - 1)
    assert row["d"] == Decimal("-123456789012345.54321")
    assert row["w"] == values[2]
    assert str(row["t"]) == values[3]
    assert row["micros"] == 1_711_848_600_125_000
    assert (bytes(row["b"]), row["f"], str(row["day"]), row["j"], row["h"]) == (
        b"\0\xff", 0.5, "1000-01-01", '{"a": 1.50}', "-838:59:59.000000",
    )  # fmt: skip
    # A date that no calendar has ends the query; it is not made null.
    with pytest.raises(Exception, match=r"(?i)malformed"):
        typed(changes.where("seqno = 3"), layout_in(changes, "shop", "zero")).collect()


def test_load_of_a_table_is_read_with_its_parts_and_written_as_an_incremental_snapshot(
    config: Config, spark: SparkSession, tmp_path: Path
) -> None:
    config = config.model_copy(update={"kafka": config.kafka.model_copy(update={"replication": 1})})
    begin = [statement("CREATE DATABASE shop", schema=""), statement("CREATE TABLE orders (id INT)")]
    read = change("read", [(None, [1, 10]), (None, [2, 20])])
    log = LogWriter(config)
    log.online()
    log.events(
        [
            load_record(0, begin, part=Part.BEGIN, shard="#UNKNOWN"),
            record(1, [change("insert", [(None, [7, 70])])], last_barrier=0),
            load_record(2, [read], last_barrier=0),
            load_record(3, part=Part.END, shard="#UNKNOWN", last_barrier=0),
            record(4, [change("insert", [(None, [8, 80])])], last_barrier=3),
        ]
    )
    changes = read_thl(spark, config, layout=True)
    rows = typed(changes, layout_in(changes.where("seqno < 4"), "shop", "orders")).orderBy("seqno", "change").collect()
    assert [
        (row["seqno"], row["load"], row["load_part"], row["action"], row["after"] and row["after"]["id"])
        for row in rows
    ] == [
        (0, "l1", "begin", "statement", None),
        (0, "l1", "begin", "statement", None),
        (1, None, None, "insert", 7),
        (2, "l1", "rows", "read", 1),
        (2, "l1", "rows", "read", 2),
        (3, "l1", "end", None, None),
        (4, None, None, "insert", 8),
    ]
    wanted = RowsOptions("loads", events=3, until_now=True)
    EventRows(spark, config, wanted, folder=tmp_path, clock=SystemClock(), stop=Event()).run()
    assert consumed(config, "loads.shop.orders") == [("1", "c", 7), ("2", "r", 1), ("2", "r", 2), ("4", "c", 8)]


def test_the_example_writes_parquet(config: Config, spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(config)
    log.online()
    log.events([event(0, 1), event(1, 2), event(2, 3)])
    where = ["--set", f"service={config.service}", "--set", f"kafka.bootstrap={config.kafka.bootstrap}"]
    done = CliRunner().invoke(
        changes_app, [*where, "--from-seqno", "1", "--to-seqno", "1", "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    assert found(spark.read.parquet(str(tmp_path / "out"))) == [(1, 0, 2)]


def test_starting_positions_are_found_without_reading_the_log(config: Config) -> None:
    """Seqno after seqno, in two partitions, also where a large unfinished event stands at the end."""
    log = LogWriter(config, partitions=2)
    log.online()
    tails = {0: -1, 1: -1}
    for seqno in range(120):
        partition = int(seqno % 3 == 0)
        log.events([event(seqno, seqno, prev=tails[partition])], partition)
        tails[partition] = seqno
    unfinished = begun(120, 1, prev=tails[0])
    log.events([unfinished | {"fragno": n, "rows": n + 1} for n in range(60)])
    with Ends(config, SystemClock()) as ends, LogReader(config) as reader:
        last = ends.latest()
        assert (last.seqno, last.epoch, {n: at.tail for n, at in last.partitions.items()}) == (119, 1, tails)
        start = ends.earliest()
        assert (start.seqno, start.epoch) == (-1, 0)
        for seqno in (0, 1, 57, 118):
            place = ends.after(seqno)
            for number, at in place.partitions.items():
                expected = max((n for n in range(seqno + 1) if int(n % 3 == 0) == number), default=-1)
                assert at.tail == expected
                if expected >= 0:
                    assert reader.tail(number, before=at.offset).seqno == expected
        assert ends.latest(place, 1).seqno == 119
        assert ends.latest(start, 7).seqno == 6
        assert ends.latest(last) == last


def delete(config: Config, partition: int, offset: int = OFFSET_END) -> None:
    """Delete a partition's messages before an offset, as retention does."""
    admin = AdminClient({"bootstrap.servers": config.kafka.bootstrap})
    (done,) = admin.delete_records([TopicPartition(config.topic, partition, offset)]).values()
    done.result()


def parts(config: Config, ends: Ends, start: LogOffset) -> list[tuple[int, int]]:
    """seqno and fragment of what the tasks of a micro-batch read."""
    read = []
    with LogReader(config) as reader:
        for bounds in ends.ranges(start, ends.latest(start), 50_000):
            ranges = OffsetRangeReader(config.topic, bounds)
            for offset, value in reader.fragments(bounds.partition, bounds.begin, reader.bounds(bounds.partition)[1]):
                header = header_of(value, "")
                if ranges.accept(header, offset) in {PART, WHOLE}:
                    read.append((header.seqno, header.fragno))
    return read


def test_deleted_parts_of_what_was_given_up_are_not_missed(config: Config) -> None:
    """As the handshake decides: neither where a query begins, nor between two of its micro-batches."""
    log = LogWriter(config)
    log.online()
    log.events([event(0, 1)])
    with Ends(config, SystemClock()) as ends, LogReader(config) as reader:
        before = ends.latest()
        for fragno in range(3):
            log.events([begun(1, 2, prev=0) | {"fragno": fragno, "rows": fragno + 1}])
        delete(config, 0, reader.bounds(0)[1] - 4)  # the second of three, each with Kafka's marker
        for start in (ends.earliest(), ends.latest(before)):
            assert start.seqno == 0
        with pytest.raises(BrokerUnavailable, match="a part of the event that is not finished"):
            ends.verify(before)
        log.online()
        assert (ends.earliest().seqno, ends.latest(before).seqno) == (0, 0)
        log.events([begun(1, 3, prev=0), ended(1, 4, prev=0, fragno=1, rows=2)])
        ends.verify(before)
        for start in (before, ends.earliest(), ends.after(Seqno(0))):
            assert parts(config, ends, start) == [(1, 0), (1, 1)]


@pytest.mark.parametrize("marker", [False, True])
def test_events_that_are_deleted_between_two_micro_batches_are_missed(config: Config, *, marker: bool) -> None:
    """Also where no event is left in the partition after them."""
    log = LogWriter(config, partitions=2)
    log.online()
    log.events([event(0, 1)])
    with Ends(config, SystemClock()) as ends:
        start = ends.latest()
        log.events([event(1, 2, prev=-1)], partition=1)
        delete(config, 1)
        if marker:
            log.online()
        log.events([event(2, 3, prev=0)])
        with pytest.raises(LogDamaged, match="has deleted later events"):
            ends.ranges(start, ends.latest(start), 50_000)


class Killed(Exception):
    """What happens at a named point, instead of kill -9."""


def consumed(config: Config, topic: str) -> list[tuple[Any, str, int]]:
    """Every committed message of a topic with one partition: the event, what it does, the key."""
    chosen = {"bootstrap.servers": config.kafka.bootstrap, "group.id": "look", "isolation.level": "read_committed",
              "enable.auto.commit": False, "enable.partition.eof": True}  # fmt: skip
    consumer = Consumer(chosen)
    consumer.assign([TopicPartition(topic, 0, 0)])
    told: list[tuple[Any, str, int]] = []
    try:
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                return told
            key = json.loads(message.key())["payload"]["id"]
            if message.value() is None:
                told.append((-1, "tombstone", key))
            else:
                payload = json.loads(message.value())["payload"]
                told.append((json.loads(payload["source"]["sequence"])[0], payload["op"], key))
    finally:
        consumer.close()


def test_rows_are_written_once_after_any_failure(
    config: Config, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config.model_copy(update={"kafka": config.kafka.model_copy(update={"replication": 1})})
    log = LogWriter(config, partitions=2)
    log.online()
    log.events([event(0, 1)], partition=0)
    log.events([event(1, 2, prev=-1)], partition=1)
    log.events([event(2, 3, prev=0)], partition=0)
    log.events([begun(3, 98, prev=1)], partition=1)

    def write(dies: str = "", events: int = 2) -> int | None:
        passed = []

        def point(name: str) -> None:
            passed.append(name)
            if name == dies:
                raise Killed

        monkeypatch.setattr(faults, "point", point)
        wanted = RowsOptions("p", events=events, until_now=True)
        rows = EventRows(spark, config, wanted, folder=tmp_path, clock=SystemClock(), stop=Event())
        try:
            progress = rows.run()
        except BrokerUnavailable:  # how a foreachBatch that dies looks from outside
            assert passed[-1] == dies
            return None
        return progress.seqno if progress else None

    topic = "p.shop.orders"
    assert write("rows.before_commit") is None
    assert consumed(config, topic) == []
    assert write("rows.after_commit") is None
    assert consumed(config, topic) == [("0", "c", 1), ("1", "c", 2)]
    log.online()
    changes = [change("update", [([1, "x"], [1, "y"])]), change("delete", [([2, "x"], None)])]
    log.events([record(3, changes, prev_seqno=2)], partition=0)
    assert write() == 3
    everything = [("0", "c", 1), ("1", "c", 2), ("2", "c", 3), ("3", "u", 1), ("3", "d", 2), (-1, "tombstone", 2)]
    assert consumed(config, topic) == everything
    assert write() == 3
    assert consumed(config, topic) == everything
