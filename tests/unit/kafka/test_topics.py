"""Each unsafe setting of a topic is found by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.config.model import Config
from connector.kafka.topics import Topic, dangers, planned

EVENTS, CONTROL, POSITION, PREPARED = planned(Config())


@pytest.mark.parametrize("plan", [EVENTS, CONTROL, POSITION, PREPARED])
def test_a_topic_with_default_settings_is_safe(plan: Topic) -> None:
    assert dangers(plan, plan) == {}


@pytest.mark.parametrize(
    ("setting", "value", "needed"),
    [
        ("min.insync.replicas", "1", "2"),
        ("unclean.leader.election.enable", "true", "false"),
        ("cleanup.policy", "compact", "delete"),
        ("cleanup.policy", "compact,delete", "delete"),
        ("message.timestamp.type", "CreateTime", "LogAppendTime"),
        ("retention.ms", "1000", "604800000"),
        ("retention.bytes", "1000", "-1"),
        ("max.message.bytes", "16383", str(2 << 20)),
    ],
)
def test_an_unsafe_setting_of_the_event_topic_is_found(setting: str, value: str, needed: str) -> None:
    topic = replace(EVENTS, settings={**EVENTS.settings, setting: value})
    assert dangers(topic, EVENTS) == {setting: needed}


@pytest.mark.parametrize(("setting", "value"), [("retention.ms", "-1"), ("max.message.bytes", str(1 << 30))])
def test_a_larger_limit_than_planned_is_safe(setting: str, value: str) -> None:
    assert dangers(replace(EVENTS, settings={**EVENTS.settings, setting: value}), EVENTS) == {}


def test_a_position_topic_without_compaction_or_with_partitions_is_unsafe() -> None:
    deleting = replace(POSITION, settings={**POSITION.settings, "cleanup.policy": "delete"}, partitions=3)
    assert dangers(deleting, POSITION) == {"cleanup.policy": "compact", "partitions": "1"}


def test_a_prepared_topic_with_retention_or_small_messages_is_unsafe() -> None:
    assert PREPARED.name.endswith(".prepared")
    for policy in ("delete", "compact,delete"):
        deleting = replace(PREPARED, settings={**PREPARED.settings, "cleanup.policy": policy})
        assert dangers(deleting, PREPARED) == {"cleanup.policy": "compact"}
    small = replace(PREPARED, settings={**PREPARED.settings, "max.message.bytes": "16383"})
    assert dangers(small, PREPARED) == {"max.message.bytes": str(2 << 20)}


def test_one_replica_is_unsafe_whatever_the_configuration_says() -> None:
    kafka = Config().kafka.model_copy(update={"replication": 1, "min_isr": 1})
    for plan in planned(Config(kafka=kafka)):
        assert dangers(plan, plan) == {"replication": "2", "min.insync.replicas": "2"}


def test_any_number_of_partitions_of_the_event_topic_is_safe() -> None:
    assert dangers(replace(EVENTS, partitions=12), EVENTS) == {}
