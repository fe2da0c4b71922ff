"""Offsets that a group stores, and settings that `kafka.properties` cannot change, with a client that remembers."""

from __future__ import annotations

import logging
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, TopicPartition

from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable
from connector.kafka import consumer as consumer_module
from connector.kafka.consumer import KafkaConsumer
from connector.logs import fields_of


class Client:
    """Stands for confluent_kafka's consumer."""

    made: Client

    def __init__(self, properties: dict[str, Any], logger: object) -> None:
        self.properties = properties
        self.stored: list[Any] = []
        Client.made = self

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> list[Any]:
        assert not asynchronous
        self.stored = [
            SimpleNamespace(partition=one.partition, error=KafkaError(KafkaError.NOT_COORDINATOR) if nth else None)
            for nth, one in enumerate(offsets)
        ]
        return self.stored

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[Any]:
        known = {0: (0, "first"), 1: (OFFSET_INVALID, None), 2: (7, None)}
        return [
            SimpleNamespace(partition=p, offset=known[p][0], metadata=known[p][1]) for p in (a.partition for a in asked)
        ]

    def unassign(self) -> None:
        """Connects."""


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> KafkaConsumer:
    monkeypatch.setattr(consumer_module, "Consumer", Client)
    return KafkaConsumer(Kafka(properties={"check.crcs": "false", "client.id": "me"}), "group")


def test_position_that_one_partition_refuses_is_not_stored(consumer: KafkaConsumer) -> None:
    consumer.commit("t", {0: (5, "")})
    with pytest.raises(BrokerUnavailable) as error:
        consumer.commit("t", {0: (5, ""), 1: (6, "")}, seqno=4)
    assert error.value.where["group"] == "group"
    assert error.value.where["seqno"] == 4


def test_stored_offset_0_is_an_offset(consumer: KafkaConsumer) -> None:
    assert consumer.committed("t", [0, 1, 2]) == {0: (0, "first"), 2: (7, "")}


def test_checksums_of_messages_are_always_checked(consumer: KafkaConsumer) -> None:
    consumer.unassign()
    assert Client.made.properties["check.crcs"] is True
    assert Client.made.properties["client.id"] == "me"


WAITING = "waiting for the brokers of kafka.bootstrap"


def test_silent_brokers_are_announced_once_before_the_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(consumer_module, "QUIET", 0.2)
    logger = logging.Logger("of this test")  # other tests set up that of the package
    logger.addHandler(caplog.handler)
    monkeypatch.setattr(consumer_module, "LOG", logger)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and answers nothing
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
        with KafkaConsumer(Kafka(bootstrap=bootstrap), "group") as consumer:
            for ask in (lambda: consumer.partitions("t", 0.5), lambda: consumer.bounds("t", 0, 0.5)):
                with pytest.raises(BrokerUnavailable):
                    ask()
        (waiting,) = [one for one in caplog.records if one.getMessage() == WAITING]
        assert waiting.levelname == "WARNING"
        assert fields_of(waiting) == {"bootstrap": bootstrap, "seconds": 0.3}
        caplog.clear()
        with KafkaConsumer(Kafka(bootstrap=bootstrap), "group") as consumer, pytest.raises(BrokerUnavailable):
            consumer.partitions("t", 0.3)  # too short a time to announce it
        assert WAITING not in caplog.messages
