"""Readers of some shards at a partition's end: a barrier is returned after everything before it, and never omitted."""

from __future__ import annotations

import uuid
from collections.abc import Collection

import pytest

from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.consume import Consumer
from connector.consume.assembly import ConsumedMessage
from tests.support.events import Story, shard_in
from tests.support.log_writer import LogWriter
from tests.support.servers.environment import Broker

SHARD = shard_in(1, 2)
BARRIER = "#UNKNOWN"
END = 4  # of either partition: a marker and an event, each with Kafka's own end of a transaction


@pytest.fixture
def story(kafka_broker: Broker) -> Story:
    """A log of two partitions; the barriers are in the first one, the shard in the second one."""
    config = Config(service=f"ends-{uuid.uuid4().hex[:8]}", kafka=Kafka(bootstrap=kafka_broker.bootstrap))
    story = Story(LogWriter(config, partitions=2))
    story.log.online()
    return story


def reading(story: Story, *, until_end: bool) -> Consumer:
    config = story.log.config
    return Consumer(config.kafka.bootstrap, config.service, shards=[SHARD], until_end=until_end)


def test_a_barrier_after_a_shards_last_event_is_returned_before_the_end(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where both are read at once: the barrier is found to be the next only after the event was given."""
    story.event(SHARD)
    story.event(BARRIER)
    with reading(story, until_end=True) as consumer:
        feed = consumer._feed
        assert feed is not None
        messages = feed.messages

        def both_at_once(timeout: float) -> list[ConsumedMessage]:
            found: list[ConsumedMessage] = []
            while any(feed.offsets[partition] < END for partition in (0, 1)):
                found += messages(timeout)
            monkeypatch.setattr(feed, "messages", messages)
            return found

        monkeypatch.setattr(feed, "messages", both_at_once)
        assert [event.seqno for event in consumer] == [0, 1]


def test_a_second_barrier_waits_for_the_shards_events_since_the_first(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.event(SHARD)
    story.event(BARRIER)
    with reading(story, until_end=False) as consumer:
        assert [next(consumer).seqno, next(consumer).seqno] == [0, 1]
        feed = consumer._feed
        assert feed is not None
        unread, pause = {1}, feed.pause

        def holding(partitions: Collection[int]) -> None:
            pause({*partitions, *unread})

        monkeypatch.setattr(feed, "pause", holding)
        feed.pause(())
        before = feed.offsets[0]
        story.event(SHARD)
        story.event(BARRIER)
        given = []
        while feed.offsets[0] == before:  # until the barrier was read; the shard's event is not
            given.append(consumer.poll(0.1))
        given.append(consumer.poll(0.1))
        assert given == [None] * len(given)
        unread.clear()
        assert [next(consumer).seqno, next(consumer).seqno] == [2, 3]
