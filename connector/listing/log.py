"""Fragments of the log as Kafka holds them, read in memory that does not grow with the log or an event.

Every partition is read twice, from its beginning to the end that it had when we began: first the headers, which tell
what was given up (only its places are kept), then the fragments that are wanted, of all partitions in seqno order.
"""

from __future__ import annotations

import heapq
import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from connector.config import Config
from connector.encode.schema import fragment_schema, single_object_header
from connector.errors import BrokerUnavailable, LogDamaged, PreflightError
from connector.listing.choice import Choice
from connector.publish.client import LOG, failure, properties
from connector.publish.header import place_of
from connector.thl.words import NO_SEQNO, Kind, Seqno

PATIENCE: Final = 30.0  # seconds without a message or the end
HEADER_BYTES: Final = 10
FIRST_LOOK: Final = 16  # offsets; each look further back is GROWTH times as wide
GROWTH: Final = 8


@dataclass(frozen=True, slots=True)
class Listed:
    """One fragment.

    Args:
        topic, partition, offset: where it stands.
        fragment: as schemas/fragment.avsc says.
        voided: it was given up, or its event is not finished yet.
    """

    topic: str
    partition: int
    offset: int
    fragment: dict[str, Any]
    voided: bool

    @property
    def place(self) -> str:
        """For people, and for other tools."""
        return f"{self.topic}-{self.partition}@{self.offset}"


@dataclass(slots=True)
class Extent:
    """What the headers of a partition tell.

    Args:
        voided: ranges of offsets, both ends included, of events that were given up or are not finished.
        oldest, newest: of its finished events, NO_SEQNO when there are none.
    """

    voided: list[tuple[int, int]] = field(default_factory=list)
    oldest: Seqno = NO_SEQNO
    newest: Seqno = NO_SEQNO


@dataclass(frozen=True, slots=True)
class Ends:
    """The two ends of the log.

    Args:
        oldest, newest: finished events that Kafka holds, NO_SEQNO when there are none.
        newest_commit: when the newest was committed on the source, µs since 1970 UTC.
    """

    oldest: Seqno = NO_SEQNO
    newest: Seqno = NO_SEQNO
    newest_commit: int | None = None


class LogList:
    """Reads the event topic. In no consumer group, commits no offsets.

    Args:
        config: the service and its brokers.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._topic = config.topic
        self._schema = fastavro.parse_schema(fragment_schema())

    def events(self, choice: Choice) -> Iterator[Listed]:
        """The wanted fragments, by seqno and fragno; of what was given up, by the order in its partition.

        Raises:
            BrokerUnavailable: Kafka does not answer.
            PreflightError: there is no such log.
            LogDamaged: a message is not a fragment.
        """
        ends = self._ends()
        extents = {partition: self._extent(partition, *end) for partition, end in ends.items()}
        known = [extent for extent in extents.values() if extent.newest != NO_SEQNO]
        low, high = choice.bounds(
            min((extent.oldest for extent in known), default=Seqno(0)),
            max((extent.newest for extent in known), default=NO_SEQNO),
        )
        streams = [
            self._fragments(partition, end, extents[partition].voided, (low, high), voided=choice.voided)
            for partition, end in ends.items()
        ]
        for _, _, listed in heapq.merge(*streams, key=lambda entry: entry[:2]):
            yield listed

    def ends(self) -> Ends:
        """The log's two ends, without reading what is between.

        Raises:
            BrokerUnavailable, PreflightError, LogDamaged: as `events`.
        """
        oldest, newest, commit = NO_SEQNO, NO_SEQNO, None
        for partition, (start, end) in self._ends().items():
            first = self._first(partition, start, end)
            oldest = first if oldest == NO_SEQNO else min(oldest, first) if first != NO_SEQNO else oldest
            last = self._last(partition, start, end)
            if last is not None and last["seqno"] > newest:
                newest, commit = Seqno(last["seqno"]), last["commit_time"]
        return Ends(oldest, newest, commit)

    def _first(self, partition: int, start: int, end: int) -> Seqno:
        """The first event that is whole."""
        for _, value in self._messages(partition, start, end):
            place = place_of(value)
            if place.kind is not Kind.EPOCH and place.fragno == 0:
                return place.seqno
        return NO_SEQNO

    def _last(self, partition: int, start: int, end: int) -> dict[str, Any] | None:
        """The last fragment that finishes an event, found by looks that go further and further back."""
        width, before = FIRST_LOOK, end
        while before > start:
            begin = max(start, before - width)
            found: dict[str, Any] | None = None
            for offset, value in self._messages(partition, begin, before):
                if place_of(value).finishes:
                    found = self._decoded(value, partition, offset)
            if found is not None:
                return found
            width, before = width * GROWTH, begin
        return None

    def _extent(self, partition: int, start: int, end: int) -> Extent:
        extent, open_from, last = Extent(), -1, -1
        for offset, value in self._messages(partition, start, end):
            place = place_of(value)
            if open_from >= 0 and place.fragno == 0:
                extent.voided.append((open_from, last))
                open_from = -1
            if place.kind is not Kind.EPOCH:
                if open_from < 0:
                    open_from = offset
                if place.last_frag:
                    open_from = -1
                    extent.oldest = place.seqno if extent.oldest == NO_SEQNO else extent.oldest
                    extent.newest = place.seqno
            last = offset
        if open_from >= 0:
            extent.voided.append((open_from, last))
        return extent

    def _fragments(
        self,
        partition: int,
        end: tuple[int, int],
        voids: list[tuple[int, int]],
        bounds: tuple[int, int],
        *,
        voided: bool,
    ) -> Iterator[tuple[int, int, Listed]]:
        waiting = iter(voids)
        void = next(waiting, None)
        for offset, value in self._messages(partition, *end):
            while void and void[1] < offset:
                void = next(waiting, None)
            given_up = void is not None and void[0] <= offset
            place = place_of(value)
            if place.seqno > bounds[1]:
                return
            if place.seqno < bounds[0] or place.kind is Kind.EPOCH or (given_up and not voided):
                continue
            listed = Listed(self._topic, partition, offset, self._decoded(value, partition, offset), given_up)
            yield place.seqno, place.epoch, listed

    def _decoded(self, value: bytes, partition: int, offset: int) -> dict[str, Any]:
        if value[:HEADER_BYTES] != single_object_header():
            raise LogDamaged(
                "a message is written with another schema than ours",
                at=f"{self._topic}-{partition}@{offset}",
                begins=value[:HEADER_BYTES].hex(),
            )
        decoded: Any = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), self._schema, None)
        fragment: dict[str, Any] = decoded
        return fragment

    def _consumer(self) -> Consumer:
        return Consumer(
            properties(
                self._config.kafka,
                group_id=f"{self._topic}.list",
                isolation_level="read_committed",
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="error",
                fetch_wait_max_ms=20,
            ),
            logger=LOG,
        )

    def _ends(self) -> dict[int, tuple[int, int]]:
        """Where each partition begins and ends."""
        with closing(self._consumer()) as consumer:
            try:
                found = consumer.list_topics(self._topic, timeout=PATIENCE).topics[self._topic]
                if found.error is not None:
                    raise PreflightError(
                        f"the log cannot be read: {found.error.str()}",
                        hint="is `service` right, and was `thl produce` started once?",
                        topic=self._topic,
                    )
                return {partition: self._bounds(consumer, partition) for partition in sorted(found.partitions)}
            except KafkaException as error:
                raise failure(error, "the log cannot be read", topic=self._topic) from error

    def _bounds(self, consumer: Consumer, partition: int) -> tuple[int, int]:
        bounds: tuple[int, int] | None = consumer.get_watermark_offsets(
            TopicPartition(self._topic, partition), timeout=PATIENCE
        )
        if bounds is None:
            raise BrokerUnavailable("a partition's ends are not told in time", at=f"{self._topic}-{partition}")
        return bounds

    def _messages(self, partition: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Committed messages with offsets from `start` to before `end`."""
        if start >= end:
            return
        place = f"{self._topic}-{partition}"
        with closing(self._consumer()) as consumer:
            consumer.assign([TopicPartition(self._topic, partition, start)])
            while True:
                message = consumer.poll(PATIENCE)
                if message is None:
                    raise BrokerUnavailable("Kafka sends no more before the end is reached", at=place)
                error = message.error()
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        return
                    raise failure(error, "the log cannot be read", at=place)
                offset, value = message.offset() or 0, message.value()
                if offset >= end:
                    return
                if value is None:
                    raise LogDamaged("a message without value", at=f"{place}@{offset}")
                yield offset, value
