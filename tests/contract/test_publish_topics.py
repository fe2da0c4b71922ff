"""Topics on a real Kafka: created safe, refused when unsafe, never changed."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import BrokerUnavailable, UnsafeTopic
from connector.kafka import topics
from connector.kafka.topics import Topics
from tests.support.servers.environment import Broker


def config_of(broker: Broker, **kafka: object) -> Config:
    settings = {"replication": 1, "min_isr": 1, "allow_unsafe": True, **kafka}
    section = Kafka.model_validate({"bootstrap": broker.bootstrap, **settings})
    return Config(service=f"s{uuid.uuid4().hex[:8]}", kafka=section)


def create(config: Config, name: str, **settings: str) -> None:
    admin = AdminClient({"bootstrap.servers": config.kafka.bootstrap})
    renamed = {key.replace("_", "."): value for key, value in settings.items()}
    admin.create_topics([NewTopic(name, 1, 1, config=renamed)])[name].result()


def test_topics_are_created_once(kafka_broker: Broker) -> None:
    config = config_of(kafka_broker, partitions=3)
    assert Topics(config).ensure() == config.kafka
    assert Topics(config).ensure() == config.kafka
    found = AdminClient({"bootstrap.servers": kafka_broker.bootstrap}).list_topics(timeout=10).topics
    assert {name: len(found[name].partitions) for name in (config.control_topic, config.position_topic)} == {
        config.control_topic: 1,
        config.position_topic: 1,
    }


def test_an_existing_topic_keeps_its_number_of_partitions(kafka_broker: Broker) -> None:
    config = config_of(kafka_broker, partitions=3)
    Topics(config).ensure()
    other = config.model_copy(update={"kafka": config.kafka.model_copy(update={"partitions": 7})})
    assert Topics(other).ensure().partitions == 3


def test_one_replica_is_refused_outside_a_sandbox(kafka_broker: Broker) -> None:
    config = config_of(kafka_broker, allow_unsafe=False)
    with pytest.raises(UnsafeTopic) as refused:
        Topics(config).ensure()
    assert refused.value.where["topic"] == config.topic
    assert "kafka.allow_unsafe" in refused.value.hint


def test_an_unsafe_topic_is_refused_with_the_command_that_corrects_it(kafka_broker: Broker) -> None:
    config = config_of(kafka_broker, allow_unsafe=False, replication=1)
    create(config, config.topic, retention_ms="1000")
    with pytest.raises(UnsafeTopic) as refused:
        Topics(config).ensure()
    assert f"--entity-name {config.topic} --add-config " in refused.value.hint
    assert "retention.ms=604800000" in refused.value.hint


def test_more_replicas_than_brokers_are_refused(kafka_broker: Broker) -> None:
    config = config_of(kafka_broker, replication=3)
    with pytest.raises(UnsafeTopic) as refused:
        Topics(config).ensure()
    assert (refused.value.where["topic"], refused.value.where["replication"]) == (config.topic, 3)


def test_a_missing_broker_is_a_temporary_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "PATIENCE", 1.0)
    config = Config(kafka=Kafka(bootstrap="127.0.0.1:1"))
    with pytest.raises(BrokerUnavailable):
        Topics(config).ensure()
