"""What makes a topic unsafe, each setting by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.config.model import Config
from connector.kafka.topics import Topic, dangers, wanted

EVENTS, CONTROL, POSITION, PREPARED = wanted(Config())


@pytest.mark.parametrize("plan", [EVENTS, CONTROL, POSITION, PREPARED])
def test_what_we_create_by_default_is_safe(plan: Topic) -> None:
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
def test_an_event_topic_that_could_lose_data(setting: str, value: str, needed: str) -> None:
    topic = replace(EVENTS, settings={**EVENTS.settings, setting: value})
    assert dangers(topic, EVENTS) == {setting: needed}


@pytest.mark.parametrize(("setting", "value"), [("retention.ms", "-1"), ("max.message.bytes", str(1 << 30))])
def test_more_than_asked_for_is_safe(setting: str, value: str) -> None:
    assert dangers(replace(EVENTS, settings={**EVENTS.settings, setting: value}), EVENTS) == {}


def test_the_memory_must_be_kept_for_ever_and_in_order() -> None:
    deleting = replace(POSITION, settings={**POSITION.settings, "cleanup.policy": "delete"}, partitions=3)
    assert dangers(deleting, POSITION) == {"cleanup.policy": "compact", "partitions": "1"}


def test_what_is_prepared_must_outlive_any_retention_and_may_be_large() -> None:
    assert PREPARED.name.endswith(".prepared")
    for policy in ("delete", "compact,delete"):
        deleting = replace(PREPARED, settings={**PREPARED.settings, "cleanup.policy": policy})
        assert dangers(deleting, PREPARED) == {"cleanup.policy": "compact"}
    small = replace(PREPARED, settings={**PREPARED.settings, "max.message.bytes": "16383"})
    assert dangers(small, PREPARED) == {"max.message.bytes": str(2 << 20)}


def test_one_copy_is_unsafe_whatever_is_asked_for() -> None:
    kafka = Config().kafka.model_copy(update={"replication": 1, "min_isr": 1})
    for plan in wanted(Config(kafka=kafka)):
        assert dangers(plan, plan) == {"replication": "2", "min.insync.replicas": "2"}


def test_partitions_of_events_are_free() -> None:
    assert dangers(replace(EVENTS, partitions=12), EVENTS) == {}
