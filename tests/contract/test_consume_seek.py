"""Binary search for an event on a real broker, across aborted transactions, markers and given up attempts."""

from __future__ import annotations

import uuid

import pytest

from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.kafka.log_reader import LogReader
from connector.log.format.first_fields import first_fields
from tests.support.events import Story
from tests.support.log_writer import LogWriter
from tests.support.servers.environment import Broker


@pytest.fixture(scope="module")
def story(kafka_broker: Broker) -> Story:
    config = Config(service=f"seek-{uuid.uuid4().hex[:8]}", kafka=Kafka(bootstrap=kafka_broker.bootstrap))
    story = Story(LogWriter(config, partitions=3))
    story.tell()
    return story


def test_binary_search_finds_each_event_at_the_offset_that_a_scan_finds(story: Story) -> None:
    with (
        LogReader(story.log.config, high_watermark=True) as walking,
        LogReader(story.log.config, point_lookup=True) as seeking,
    ):
        for partition in range(3):
            start, end = walking.bounds(partition)
            places = [
                (offset, first_fields(value, f"{partition}@{offset}"))
                for offset, value in walking.fragments(partition, start, end)
            ]
            assert len(places) > 10
            for seqno in range(0, story.seqno + 3, 3):
                wanted = [offset for offset, place in places if place.seqno >= seqno]
                assert seeking.offset_of(partition, seqno, (start, end)) == (wanted[0] if wanted else end)


def test_binary_search_reads_few_messages(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    read = LogReader.first

    def counted(self: LogReader, partition: int, start: int, end: int) -> tuple[int, bytes] | None:
        reads.append(start)
        return read(self, partition, start, end)

    monkeypatch.setattr(LogReader, "first", counted)
    with LogReader(story.log.config, point_lookup=True) as log:
        start, end = log.bounds(0)
        assert start < log.offset_of(0, 14) < end
    assert len(reads) <= (end - start).bit_length()
