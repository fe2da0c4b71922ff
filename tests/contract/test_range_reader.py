"""Ranges of offsets on a real Kafka: Spark decides them, workers read them or leave them to the driver."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame

from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import BrokerUnavailable, LogDamaged
from connector.kafka import consumer, range_reader
from connector.kafka.handshake import EARLIEST
from connector.kafka.large_messages import LARGE, LargeMessages
from connector.kafka.range_reader import RangeReader
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment, Unread
from connector.log.format.message import Message
from connector.log.reading.event_sequencer import EventSequencer
from connector.spark.stream import range_task, task_result, worker
from connector.spark.stream.kafka_source import offsets_stream, task_ranges
from connector.spark.stream.parts import Part, begin_of, end_of
from connector.spark.stream.range_task import Compaction, RangeTask, TaskRange
from connector.spark.stream.task_result import FAILED, deserialized, failure_of, joined_pieces
from tests.support.fragments import change, load_record, record
from tests.support.log_writer import LogWriter
from tests.support.long import long
from tests.support.memory_target import MemoryTarget
from tests.support.producing import until
from tests.support.servers.environment import Broker
from tests.support.spark import session
from tests.unit.applier.test_core import history

CLOCK = SystemClock()


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    return Config(service=f"r{uuid.uuid4().hex[:10]}", kafka=Kafka(bootstrap=kafka_broker.bootstrap, retries=5))


@pytest.fixture
def reader(config: Config) -> Iterator[RangeReader]:
    with closing(RangeReader(config.kafka, config.topic, CLOCK)) as made:
        yield made


@pytest.fixture(autouse=True)
def no_readers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is a worker of each test, but collects garbage as before."""
    monkeypatch.setattr(worker, "prepare", lambda: None)
    yield
    while range_task._readers:
        range_task._readers.popitem()[1].close()


def read(reader: RangeReader, begin: int, end: int, partition: int = 0) -> list[int]:
    """The offsets of a range's messages; each message has its own as its value."""
    found = []
    for batch in reader.batches(partition, begin, end):
        assert batch.num_rows
        assert set(batch["partition"].to_pylist()) == {partition}
        assert batch["offset"].to_pylist() == [int(value) for value in batch["value"].to_pylist()]
        found += batch["offset"].to_pylist()
    return found


def numbers(*offsets: int) -> list[bytes]:
    return [str(offset).encode() for offset in offsets]


def with_aborted(config: Config) -> tuple[LogWriter, list[int], int]:
    """A partition with aborted transactions; its committed messages' offsets, and its end."""
    log = LogWriter(config)
    log.raw(*numbers(*range(10)))  # a marker of the transaction is at 10
    log.raw(*numbers(*range(11, 16)), abort=True)
    log.raw(*numbers(*range(17, 1200)))
    log.raw(b"aborted", abort=True)  # and its marker
    return log, [*range(10), *range(17, 1200)], 1203


def test_committed_messages_of_a_range_are_read_exactly(config: Config, reader: RangeReader) -> None:
    _, committed, end = with_aborted(config)
    for begin, upto in (
        (0, end),  # the partition's end, after the marker of an aborted transaction
        (0, 1200),
        (3, 9),
        (0, 1),
        (9, 18),
        (12, 14),  # nothing but what was aborted
        (5, 13),
        (16, 17),  # a marker
        (1199, end),
        (1200, end),
        (0, end),
    ):
        expected = [offset for offset in committed if begin <= offset < upto]
        assert read(reader, begin, upto) == expected, (begin, upto)


def test_an_open_transaction_behind_the_end_is_not_waited_for(config: Config, reader: RangeReader) -> None:
    _, committed, end = with_aborted(config)
    other = Producer({"bootstrap.servers": config.kafka.bootstrap, "transactional.id": f"{config.topic}.open"})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(config.topic, b"open", partition=0)
    other.flush(30)
    try:
        assert read(reader, 0, end) == committed
        assert read(reader, 1200, end) == []
    finally:
        other.abort_transaction(30)


def test_partitions_are_read_one_after_the_other(config: Config, reader: RangeReader) -> None:
    log = LogWriter(config, partitions=2)
    for partition in (0, 1):
        log.raw(*numbers(*range(2_000)), partition=partition)
    for partition, begin, end in ((0, 0, 1500), (1, 0, 2), (0, 1500, 2001), (1, 7, 2001)):
        assert read(reader, begin, end, partition) == list(range(begin, min(end, 2_000)))


def test_a_range_that_is_left_in_the_middle_does_not_disturb_the_next(config: Config, reader: RangeReader) -> None:
    LogWriter(config).raw(*numbers(*range(2_000)))
    with closing(reader.batches(0, 0, 2_000)) as batches:
        assert next(batches).num_rows < 2_000
    assert reader._consumer._consumer.assignment() == []  # nothing more is fetched
    assert read(reader, 3, 8) == [3, 4, 5, 6, 7]


def test_deleted_offsets_are_refused_and_later_ones_read(config: Config, reader: RangeReader) -> None:
    LogWriter(config).raw(*numbers(*range(20)))
    admin = AdminClient({"bootstrap.servers": config.kafka.bootstrap})
    for deleted in admin.delete_records([TopicPartition(config.topic, 0, 5)]).values():
        deleted.result(10)
    with pytest.raises(BrokerUnavailable) as refused:
        read(reader, 3, 10)
    assert refused.value.where["begin"] == 3
    assert read(reader, 5, 10) == [5, 6, 7, 8, 9]


def test_messages_that_may_be_large_are_held_few_at_a_time(config: Config, reader: RangeReader) -> None:
    LogWriter(config).raw(*[b"x" * 200_000] * 60)  # on the wire less than one fetch of other readers
    counts = [batch.num_rows for batch in reader.batches(0, 0, 60, large=True)]
    assert sum(counts) == 60
    assert max(counts) <= 15  # three of the producer's batches: what was queued, what was fetched meanwhile


def test_a_range_beyond_the_partition_s_end_is_refused(
    config: Config, reader: RangeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    LogWriter(config).raw(*numbers(*range(5)))
    monkeypatch.setattr(range_reader, "PATIENCE", 0.5)
    with pytest.raises(BrokerUnavailable) as refused:
        read(reader, 1, 7)
    assert refused.value.where == {"at": f"{config.topic}-0", "begin": 1, "end": 7}


def task(config: Config, **fields: Any) -> RangeTask:
    compaction = Compaction(**{"compact": True, "events": True} | fields)
    return RangeTask(kafka=config.kafka, topic=config.topic, compaction=compaction, spool=None)


def parts_of(one: RangeTask, bounds: TaskRange) -> list[Part]:
    """The parts of a range as they come out of a worker; raises the error that comes out instead."""
    pieces = list(one([[bounds]]))
    for piece in pieces:
        if piece.number == FAILED:
            raise failure_of(piece)
    return [part for result in joined_pieces(pieces, None) for part in deserialized(result)]


def written(config: Config, count: int) -> int:
    """Write so many events of about 1 KiB after a marker; return the partition's end."""
    log = LogWriter(config)
    log.online()
    for seqno in range(0, count, 100):
        log.events([record(n, [row(n)]) for n in range(seqno, min(count, seqno + 100))])
    with closing(consumer.KafkaConsumer(config.kafka, f"{config.topic}.end")) as ends:
        return ends.bounds(config.topic, 0)[1]


def row(number: int) -> dict[str, Any]:
    return change("insert", [(None, [number, "x" * 1000])])


def applied(config: Config, parts: list[list[Part]]) -> set[int]:
    """Apply parts to a target in memory; return the keys that it then has."""
    target = MemoryTarget()
    position = target.claim("shop")
    known = history([0], 1_000_000)
    with (
        closing(RangeReader(config.kafka, config.topic, CLOCK)) as ranges,
        LargeMessages(config.kafka, config.topic) as large,
    ):
        core = ApplyCore(
            target,
            position,
            EventSequencer[Message, Messages | Segment](
                topic=config.topic, partitions=1, position=position, history=known
            ),
            PartitionBuffers(config.topic, large, ranges),
            log_id=known.log_id,
            gtid_set="",
            topic=config.topic,
            clock=CLOCK,
        )
        for one in parts:
            core.accept(one)
    table: Any = target.tables["shop.orders"]
    return {key[0] for key in table.rows}


@pytest.mark.parametrize("compact", [True, False])
def test_what_a_task_has_no_memory_for_is_applied_from_the_driver(
    config: Config, monkeypatch: pytest.MonkeyPatch, *, compact: bool
) -> None:
    end = written(config, 3_000)
    whole = parts_of(task(config, compact=compact), TaskRange(0, 0, end, first=True))
    assert not [part for part in whole if isinstance(part, Unread)]
    # The marker and the first event at most stay messages.
    assert sum(part.num_rows for part in whole if isinstance(part, pa.RecordBatch)) <= 2 or not compact
    monkeypatch.setattr(range_task, "JVM_BYTES", 1 << 20)
    parts = parts_of(task(config, compact=compact), TaskRange(0, 0, end, first=True))
    *before, unread = parts
    assert isinstance(unread, Unread)
    assert (unread.end, unread.begin > 900) == (end, True)
    assert all(end_of(one) <= begin_of(other) for one, other in pairwise(parts))
    assert any(isinstance(part, Segment) for part in before) == compact
    monkeypatch.setattr("connector.applier.partition_buffers.READ_BYTES", 200_000)
    assert (
        applied(config, [whole]) == applied(config, [before, [unread]]) == applied(config, [parts]) == set(range(3_000))
    )


@pytest.mark.parametrize("compact", [True, False])
def test_large_messages_are_read_without_their_values_and_applied_from_the_driver(
    config: Config, reader: RangeReader, *, compact: bool
) -> None:
    log = LogWriter(config)
    log.online()
    sizes = [10, LARGE, LARGE, 10, LARGE - 1000, *[10] * 50, LARGE, 10]  # of texts, so that messages are larger
    for seqno, size in enumerate(sizes):
        log.events([record(seqno, [change("insert", [(None, [seqno, "x" * size])])])])
    with closing(consumer.KafkaConsumer(config.kafka, f"{config.topic}.end")) as ends:
        end = ends.bounds(config.topic, 0)[1]
    values = [value for batch in reader.batches(0, 0, end) for value in batch["value"].to_pylist()]
    assert [value is None for value in values[1:]] == [size == LARGE for size in sizes]
    parts = parts_of(task(config, compact=compact), TaskRange(0, 0, end, first=True))
    assert sum(part["value"].null_count for part in parts if isinstance(part, pa.RecordBatch)) == 3
    assert any(isinstance(part, Segment) for part in parts) == compact
    assert applied(config, [parts]) == set(range(len(sizes)))


@pytest.mark.parametrize("spooled", [False, True])
@pytest.mark.parametrize("target", ["shelf", "lake"])
def test_large_rows_of_a_load_for_other_targets_do_not_leave_the_task(
    config: Config, tmp_path: Path, target: str, *, spooled: bool
) -> None:
    log = LogWriter(config)
    log.online()
    sizes = [10, LARGE, 10, 3 * LARGE]
    for seqno, size in enumerate(sizes):
        rows = change("read", [(None, [seqno, "x" * size])], table="loaded")
        log.events([load_record(seqno, [rows], targets=("lake",))])
    end = 2 * (1 + len(sizes))  # each in a transaction of its own, with a marker
    with closing(consumer.KafkaConsumer(config.kafka, f"{config.topic}.end")) as ends:
        until(lambda: ends.bounds(config.topic, 0)[1] == end)
    one = replace(task(config, target=target), spool=tmp_path if spooled else None)
    pieces = list(one([[TaskRange(0, 0, end, first=True)]]))
    results = list(joined_pieces(pieces, one.spool))
    parts = [part for result in results for part in deserialized(result)]
    large = sum(part["value"].null_count for part in parts if isinstance(part, pa.RecordBatch))
    assert large == (2 if target == "lake" else 0)
    left_out = sum(piece.left_out for piece in pieces)
    if target == "lake":
        assert left_out == 0
        return
    assert sum(result.size for result in results) < 5_000
    assert 2 * LARGE - 1_000 < left_out < 2 * LARGE + 1_000  # a large message counts as many bytes as it has at least


@pytest.mark.parametrize("damaged", [0, 1, 40])
def test_messages_that_are_no_log_are_left_to_the_driver_which_refuses_them(config: Config, damaged: int) -> None:
    log = LogWriter(config)
    log.online()
    log.events([record(n, [row(n)]) for n in range(damaged)])
    log.raw(b"no fragment")
    with closing(consumer.KafkaConsumer(config.kafka, f"{config.topic}.end")) as ends:
        end = ends.bounds(config.topic, 0)[1]
    at = end - 2
    parts = parts_of(task(config), TaskRange(0, 0, end, first=True))
    assert isinstance(parts[-1], Unread)
    assert all(end_of(one) <= begin_of(other) for one, other in pairwise(parts))
    with pytest.raises(LogDamaged) as refused:
        applied(config, [parts])
    assert refused.value.where["at"] == f"{config.topic}-0@{at}"


@pytest.mark.parametrize(("first", "kind"), [(True, pa.RecordBatch), (False, Segment)])
def test_the_message_with_which_a_stream_begins_stays_one(config: Config, kind: type, *, first: bool) -> None:
    """It tells the driver the epoch; the stream begins after the marker."""
    end = written(config, 60)
    begin, *_ = parts_of(task(config), TaskRange(0, 20, end, first=first))
    assert isinstance(begin, kind)


def test_a_task_without_compaction_returns_messages(config: Config) -> None:
    end = written(config, 300)
    parts = parts_of(task(config, compact=False), TaskRange(0, 0, end))
    assert all(isinstance(part, pa.RecordBatch) for part in parts)
    assert applied(config, [parts]) == set(range(300))


def test_a_worker_reads_with_one_reader_until_it_fails(config: Config) -> None:
    end = written(config, 100)
    one = task(config)
    parts_of(one, TaskRange(0, 0, end))
    (first,) = range_task._readers.values()
    parts_of(task(config, compact=False), TaskRange(0, 2, end))
    assert list(range_task._readers.values()) == [first]
    with pytest.raises(BrokerUnavailable):
        parts_of(one, TaskRange(0, 5_000, 5_001))
    assert not range_task._readers
    assert end_of(parts_of(one, TaskRange(0, 0, end))[-1]) <= end
    (second,) = range_task._readers.values()
    assert second is not first
    other = task(
        config.model_copy(update={"kafka": config.kafka.model_copy(update={"properties": {"linger.ms": "1"}})})
    )
    parts_of(other, TaskRange(0, 2, end))
    assert len(range_task._readers) == 2


def test_a_task_that_is_ended_in_the_middle_leaves_no_reader(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    end = written(config, 3_000)
    monkeypatch.setattr(task_result, "PIECE_BYTES", 1_000)
    pieces = task(config, compact=False)([[TaskRange(0, 0, end)]])
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    del pieces
    assert not range_task._readers
    assert ignored == []
    assert applied(config, [parts_of(task(config), TaskRange(0, 0, end))]) == set(range(3_000))


@pytest.mark.parametrize("options", [{"minPartitions": "7"}, *long({"maxOffsetsPerTrigger": "150"})])
def test_bounds_are_the_offsets_of_spark_s_batch(config: Config, tmp_path: Path, options: Mapping[str, str]) -> None:
    log = LogWriter(config, partitions=2)
    log.raw(*numbers(*range(200)))
    log.raw(*numbers(*range(90)), partition=1)
    log.raw(*numbers(*range(91, 100)), partition=1, abort=True)
    found: list[tuple[int, int, int]] = []

    def accept(frame: DataFrame, _number: int) -> None:
        bounds = task_ranges(frame)
        rows = {(row.partition, row.offset) for row in frame.select("partition", "offset").collect()}
        committed = {0: 200, 1: 90}
        within = [(one.partition, at) for one in bounds for at in range(one.begin, one.end)]
        assert rows == {(partition, at) for partition, at in within if at < committed[partition]}
        assert len(within) == len(set(within))
        found.extend((one.partition, one.begin, one.end) for one in bounds)

    with session(tmp_path / "spark", master="local[2]") as spark:
        stream = offsets_stream(spark, config.kafka, topic=config.topic, offsets={0: EARLIEST, 1: 3}, options=options)
        query = stream.writeStream.option("checkpointLocation", str(tmp_path / "query")).foreachBatch(accept).start()
        try:
            until(lambda: not query.isActive or {end for *_, end in found} >= {201, 101})
            assert query.exception() is None
        finally:
            query.stop()
    if "minPartitions" in options:
        assert len(found) > 2
    for partition, same in groupby(sorted(found), itemgetter(0)):
        ranges = list(same)
        assert (ranges[0][1], ranges[-1][2]) == ((0, 201), (3, 101))[partition]
        assert all(one[2] == other[1] for one, other in pairwise(ranges))
