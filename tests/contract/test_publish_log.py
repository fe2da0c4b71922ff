"""A log on a real Kafka: fenced, atomic, read to its end past commit markers and aborted data."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from connector.clock import SystemClock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, Fenced, LogDamaged, Unsupported
from connector.kafka.log_reader import LogReader
from connector.kafka.records import position_message
from connector.kafka.topics import Topics
from connector.kafka.transactions import Transactions
from connector.log.ids import LogId, Seqno
from connector.log.transaction.batch import PositionAdvance, Statement, TransactionBatch
from connector.log.transaction.definition import Definitions, TableDefinition
from connector.log.transaction.position import PositionRecord, SnapshotCompleted, SourcePosition
from connector.log.writing.fragment import Fragment
from connector.log.writing.online import OnlinePlan, SourceFound, decide
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.producer.publish.publisher import Point, Publisher
from connector.producer.publish.queue import Work
from tests.contract.test_publish_topics import config_of
from tests.support import encoding as making
from tests.support.clock import PATIENCE
from tests.support.producing import fragments
from tests.support.servers.environment import Broker

FACTS = SourceFound(
    source_id="db:3306",
    server_uuid="3e11fa47-71ca-11e1-9e33-c80aa9429562",
    now=1,
    log_id=LogId("ab" * 16),
    start=SourcePosition("mysql-bin.000002", 4),
)


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    result = config_of(kafka_broker, partitions=2)
    Topics(result).ensure()
    return result


class Log:
    """A producer's Kafka side."""

    def __init__(self, config: Config, point: Point | None = None) -> None:
        self.config = config
        self.points: list[str] = []
        self.transactions = Transactions(config, SystemClock())
        self.transactions.open()
        self.publisher = Publisher(config, self.transactions, SystemClock(), point or self.points.append)
        limits = Limits(fragment=1000, shard=2000, message=1 << 20)
        self.encoder = Encoder(service=config.service, source_id="db:3306", partitions=2, limits=limits)

    def online(self) -> OnlinePlan:
        plan = look(self.config)
        markers = [self.encoder.marker(partition, header) for partition, header in plan.markers.items()]
        self.publisher.online(plan, markers)
        self.encoder.begin(
            Numbering(
                epoch=plan.epoch.epoch,
                next_seqno=Seqno(plan.position.last_finished + 1),
                tails=plan.position.tails,
                last_barrier=plan.position.last_barrier,
            )
        )
        return plan

    def event(self, text: str = "x") -> list[Fragment]:
        return self.encoder.encode(TransactionBatch(making.BEGIN, [Statement("a", text)], making.ENDING))

    def close(self) -> None:
        self.publisher.end()
        self.transactions.close()


def look(config: Config) -> OnlinePlan:
    with LogReader(config) as reader:
        control, position = reader.control(), reader.position()
        return decide(control, position, {number: reader.tail(number) for number in range(2)}, FACTS)


def next_start(config: Config) -> OnlinePlan:
    """What the next producer finds. It fences first: Kafka tells of a commit before readers see it."""
    transactions = Transactions(config, SystemClock())
    transactions.open()
    return look(config)


def position_of(config: Config) -> PositionRecord:
    return next_start(config).position


@pytest.fixture
def log(config: Config) -> Iterator[Log]:
    result = Log(config)
    yield result
    result.close()


def test_a_new_log_has_only_its_first_epoch_in_every_partition(config: Config, log: Log) -> None:
    plan = log.online()
    assert plan.new
    again = next_start(config)
    assert (again.new, again.epoch.epoch, again.control.log) == (False, 2, plan.control.log)
    for partition in (0, 1):
        assert [record["kind"] for record in fragments(config, partition)] == ["epoch"]


def test_a_fenced_producer_learns_of_it_while_it_sends(config: Config, log: Log) -> None:
    """Else it would go online again and fence the newer one in turn."""
    log.online()
    log.transactions.begin()
    with closing(Transactions(config, SystemClock())) as newer:
        newer.open()
        with pytest.raises(Fenced, match="a message cannot be sent"):
            while True:
                log.transactions.send(config.topic, 0, None, bytes(1000))


def test_events_and_position_become_visible_together(config: Config, log: Log) -> None:
    log.online()
    work: Work = [*log.event(), *log.event(), PositionAdvance(SourcePosition("mysql-bin.000009", 7), None)]
    log.publisher.put(work)
    committed = log.publisher.drain()
    assert committed == position_of(config)
    assert (committed.last_finished, committed.resume.file) == (1, "mysql-bin.000009")
    assert [record["seqno"] for record in fragments(config) if record["kind"] != "epoch"] == [0, 1]
    assert next_start(config).epoch.first_seqno == 2


def test_an_open_event_changes_only_the_open_part_of_the_position(config: Config, log: Log) -> None:
    log.online()
    log.publisher.put([*log.event()])
    big = making.whole([making.Change(LAYOUT, making.Action.INSERT, [ROW] * 50)])[0].changes
    begun = log.encoder.encode(TransactionBatch(making.BEGIN, big, None))
    assert begun
    log.publisher.put([*begun, PositionAdvance(SourcePosition("mysql-bin.000009", 7), None)])
    position = log.publisher.drain()
    assert position.open is not None
    assert (position.open.seqno, position.open.fragno) == (1, len(begun) - 1)
    assert (position.last_finished, position.resume) == (0, making.ENDING.end)
    assert log.points[-1] == "produce.mid_event_after_commit"
    plan = next_start(config)
    assert (plan.epoch.first_seqno, plan.position.open) == (1, None)


def test_an_unpublished_transaction_moves_the_position(config: Config, log: Log) -> None:
    log.online()
    log.publisher.put([PositionAdvance(SourcePosition("mysql-bin.000009", 7), None)])
    log.publisher.drain()
    assert position_of(config).resume == SourcePosition("mysql-bin.000009", 7)


def test_an_initial_load_ends_with_its_last_event(config: Config, log: Log) -> None:
    log.online()
    log.publisher.put([*log.event(), SnapshotCompleted("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9")])
    position = log.publisher.drain()
    assert (position.snapshot, position.gtid_set) == (False, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9")
    assert log.points[-1] == "produce.snapshot_end_after_commit"


def test_an_event_and_its_table_definition_become_visible_together(config: Config) -> None:
    """A start between the two would name columns by what the table was before."""
    table = TableDefinition(LAYOUT, "utf8mb4")
    seen: list[tuple[int, bool]] = []

    def look_after_commit(point: str) -> None:
        if point == "produce.after_commit":
            with LogReader(config, high_watermark=True) as reader:
                tables = reader.control().tables
            events = sum(record["kind"] != "epoch" for record in fragments(config))
            seen.append((events, tables is not None and LAYOUT.name in tables.tables))

    log = Log(config, look_after_commit)
    try:
        log.online()
        log.publisher.put([*log.event(), Definitions({LAYOUT.name: table}), *log.event()])
        log.publisher.drain()
    finally:
        log.close()
    assert seen == [(2, True)]


def test_last_of_several_unpublished_transactions_moves_the_position(config: Config, log: Log) -> None:
    log.online()
    places = [SourcePosition("mysql-bin.000009", 7), SourcePosition("mysql-bin.000009", 8)]
    log.publisher.put([PositionAdvance(place, None) for place in places])
    log.publisher.drain()
    assert position_of(config).resume == places[-1]


def test_the_older_of_two_producers_is_fenced_when_it_writes(config: Config, log: Log) -> None:
    log.online()
    newer = Log(config)
    try:
        newer.online()
        log.publisher.put([*log.event()])
        with pytest.raises(Fenced):
            log.publisher.drain()
        newer.publisher.put([*newer.event()])
        assert newer.publisher.drain().last_finished == 0
    finally:
        newer.close()
    events = [record for record in fragments(config) if record["kind"] != "epoch"]
    assert [(record["seqno"], record["epoch"]) for record in events] == [(0, 2)]


def test_the_older_of_two_producers_is_fenced_when_it_confirms(config: Config, log: Log) -> None:
    log.online()
    log.publisher.drain()
    newer = Log(config)
    try:
        with pytest.raises(Fenced):
            log.publisher.confirm()
    finally:
        newer.close()


def test_the_tail_is_found_before_aborted_events(config: Config, log: Log) -> None:
    log.online()
    log.publisher.put([*log.event()])
    before = log.publisher.drain()
    for _ in range(40):  # more offsets of aborted data and markers than one probe reads
        log.transactions.begin()
        for fragment in log.event():
            log.transactions.send(config.topic, 0, fragment.key, fragment.value)
        log.transactions.send(config.position_topic, 0, *position_message(before))
        log.transactions._producer.flush()
        log.transactions._producer.abort_transaction(30)
    assert position_of(config) == before
    assert [record["seqno"] for record in fragments(config) if record["kind"] != "epoch"] == [0]
    assert len(fragments(config, isolation="read_uncommitted")) > 40
    with LogReader(config) as reader:
        tail = reader.tail(0)
        assert (tail.seqno, tail.epoch) == (0, 1)


def test_a_reader_to_the_high_watermark_waits_for_an_open_transaction(config: Config, log: Log) -> None:
    before = log.online().position
    moved = replace(before, resume=SourcePosition("mysql-bin.000002", 1000))
    seen: list[PositionRecord | None] = []

    def read_to_high_watermark() -> None:
        with LogReader(config, high_watermark=True) as reader:
            seen.append(reader.position())

    log.transactions.begin()
    log.transactions.send(config.position_topic, 0, *position_message(moved))
    log.transactions._producer.flush()
    waiting = threading.Thread(target=read_to_high_watermark, daemon=True)
    waiting.start()
    waiting.join(2)
    assert not seen
    with LogReader(config) as reader:
        assert reader.position() == before
    log.transactions.commit()
    waiting.join(PATIENCE)
    assert seen == [moved]


def test_a_reader_that_an_open_transaction_holds_up_names_it(config: Config, log: Log) -> None:
    before = log.online().position
    log.transactions.begin()
    log.transactions.send(config.position_topic, 0, *position_message(before))
    log.transactions._producer.flush()
    with LogReader(config, high_watermark=True, patience=1.0) as reader:
        with pytest.raises(BrokerUnavailable) as held_up:
            reader.position()
        assert "transaction is open" in held_up.value.hint


def test_an_added_partition_is_refused(config: Config, log: Log) -> None:
    log.online()
    with LogReader(config, high_watermark=True) as reader:  # a commit becomes visible in one topic before another
        control, position = reader.control(), reader.position()
        tails = {number: reader.tail(number) for number in range(2)}
    with pytest.raises(LogDamaged) as refused:
        decide(control, position, {**tails, 2: tails[1]}, FACTS)
    assert (refused.value.where["expected"], refused.value.where["found"]) == (2, 3)


def test_a_message_larger_than_the_topics_limit_is_refused_with_the_setting(kafka_broker: Broker) -> None:
    config = config_of(kafka_broker, partitions=2, max_message_bytes=100_000)
    Topics(config).ensure()
    larger = config.model_copy(update={"kafka": config.kafka.model_copy(update={"max_message_bytes": 1 << 20})})
    log = Log(larger)
    try:
        log.online()
        log.publisher.put([*log.event(secrets.token_hex(250_000))])
        with pytest.raises(Unsupported) as refused:
            log.publisher.drain()
        assert "max.message.bytes" in refused.value.hint
    finally:
        log.close()


def test_many_small_events_share_transactions(config: Config, log: Log) -> None:
    log.online()
    for _ in range(500):
        log.publisher.put([*log.event()])
    assert log.publisher.drain().last_finished == 499
    assert log.points.count("produce.after_commit") < 250
    assert threading.active_count() < 50


LAYOUT = making.TableLayout(making.TableName("a", "t"), (making.Column("c", "varchar(100)"),), (0,))
ROW = {"before": None, "after": ["x" * 90]}
