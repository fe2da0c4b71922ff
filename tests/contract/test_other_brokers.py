"""Brokers with other settings than the sandbox's: Kafka's own defaults, and smaller limits."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka.admin import AdminClient

from connector.clock import SystemClock
from connector.consume import Consumer, consumer
from connector.errors import BrokerUnavailable, PreflightError, UnsafeTopic
from connector.kafka import topics
from connector.kafka.requests import send_request
from connector.kafka.topics import Topics
from connector.kafka.transactions import Transactions
from connector.log.epochs.control import OfflineRequest
from connector.log.ids import Epoch, LogId, Seqno
from connector.sandbox.kafka import KafkaBroker
from connector.spark.debezium import sink as sinks
from connector.spark.debezium.sink import Sink, SinkProgress
from tests.contract.test_publish_topics import config_of, create
from tests.support.fragments import record
from tests.support.log_writer import LogWriter

pytestmark = pytest.mark.servers

SETTINGS = {
    "auto.create.topics.enable": "true",  # Kafka's default
    "num.partitions": "3",
    "transaction.max.timeout.ms": "60000",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "1000",
}
EXPIRED = 75.0  # seconds after which the offsets of a group are deleted


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    started = KafkaBroker(tmp_path_factory.mktemp("kafka"), settings=SETTINGS, die_with_parent=True)
    started.start()
    try:
        yield started
    finally:
        started.kill()


def test_topics_get_their_own_settings_where_brokers_create_topics_by_themselves(broker: KafkaBroker) -> None:
    config = config_of(broker, partitions=2)
    assert len(Topics(config).inspect(10).missing) == 4
    assert Topics(config).ensure().partitions == 2
    for plan in topics.planned(config):
        found = Topics(config)._inspect(plan.name)
        assert found is not None
        assert (plan.name, found.partitions) == (plan.name, plan.partitions)
        assert plan.settings.items() <= found.settings.items()


def test_a_topic_that_another_client_creates_meanwhile_is_checked(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(broker, allow_unsafe=False, replication=2, min_isr=2)
    made = topics.create

    def late(admin: AdminClient, plan: topics.Topic) -> bool:
        create(config, plan.name)
        return made(admin, plan)

    monkeypatch.setattr(topics, "create", late)
    with pytest.raises(UnsafeTopic, match="could lose data"):
        Topics(config).ensure()


def test_a_request_to_a_log_that_is_not_there_creates_no_topic(broker: KafkaBroker) -> None:
    config = config_of(broker, properties={"topic.metadata.propagation.max.ms": "1000"})
    with pytest.raises(BrokerUnavailable):
        send_request(config, OfflineRequest(epoch=Epoch(1), asked_at=0, asked_by="me@here", reason=""))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert config.control_topic not in admin.list_topics(timeout=10).topics


def test_a_shorter_limit_of_transactions_is_named(broker: KafkaBroker) -> None:
    config = config_of(broker, properties={"transaction.timeout.ms": "60001"})
    with closing(Transactions(config, SystemClock())) as transactions, pytest.raises(PreflightError) as refused:
        transactions.open()
    assert "transaction.max.timeout.ms" in refused.value.hint


def test_progress_is_read_past_the_open_transaction_of_another_service(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "TRANSACTION_MS", 30_000)
    monkeypatch.setattr(sinks, "PATIENCE", 3.0)
    prefix = f"p{uuid.uuid4().hex[:8]}"

    def sink(service: str) -> Sink:
        config = config_of(broker).model_copy(update={"service": service})
        return Sink(config, prefix, partitions=1, clock=SystemClock())

    one, other = sink("one"), sink("other")
    one.open()
    other.open()
    other.begin()
    other._transactions.send(f"{prefix}.progress", 0, b"other", b"{}")
    other._transactions._producer.flush()
    written = SinkProgress(LogId("ab" * 16), Seqno(7), Epoch(1))
    one.begin()
    one.send(f"{prefix}.shop.orders", b"key", b"value")
    one.commit(written)
    one.close()
    with closing(sink("one")) as again, pytest.raises(BrokerUnavailable, match="to its end"):
        again.open()
    other.close()
    with closing(sink("one")) as again:
        assert again.open() == written


@pytest.mark.long
def test_a_group_without_new_events_keeps_its_position(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "STORE_AGAIN", 1.0)
    log = LogWriter(config_of(broker), partitions=2)
    log.online()
    log.events([record(seqno, prev_seqno=seqno - 1) for seqno in range(2)])

    def reading(group: str) -> Consumer:
        return Consumer(broker.bootstrap, log.config.service, group=group)

    with reading("left") as left, reading("waits") as waiting:
        for each in (left, waiting):
            assert [next(each).seqno, next(each).seqno] == [0, 1]
            each.commit()
        began = time.monotonic()
        while time.monotonic() - began < EXPIRED:
            assert waiting.poll(5) is None
    for group, expected in (("waits", None), ("left", 0)):
        with reading(group) as again:
            found = again.poll(2)
            assert (found and found.seqno) == expected
