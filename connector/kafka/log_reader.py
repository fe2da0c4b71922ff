"""What the log's topics hold, read to their ends, committed messages only.

The end of a partition is known by librdkafka's end-of-partition event: offsets do not tell, because commit
markers and aborted messages take offsets and are never delivered.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from types import TracebackType
from typing import Final, Self

from connector.config.model import Config
from connector.errors import BrokerUnavailable, LogDamaged
from connector.kafka.consumer import PATIENCE, KafkaConsumer, KafkaMessage
from connector.kafka.prepared_records import PreparedReader, PreparedState, message_key
from connector.kafka.records import control_state, position_record
from connector.log.format.first_fields import FirstFields, first_fields
from connector.log.ids import Seqno
from connector.log.reading.search import Probe, first_of
from connector.log.transaction.position import PositionRecord
from connector.log.writing.control import ControlState
from connector.log.writing.tail import TailFound

FIRST_LOOK: Final = 16  # offsets; each look further back is GROWTH times as wide
GROWTH: Final = 8
GLANCE: Final = 64 << 10  # bytes; a broker always sends one batch at least


class LogReader:
    """Reads a log's topics. In no consumer group, commits no offsets.

    Every method raises BrokerUnavailable when the brokers do not answer, PreflightError when they refuse us, and
    LogDamaged for a record that is not ours.

    A Kafka transaction becomes visible in one partition before another. Who compares partitions while a producer may
    be at work reads `settled`: then the end is where a partition ends, not where it is decided, and a transaction
    that is undecided there is waited for.

    Args:
        config: the service and its brokers.
        settled: wait for what is undecided now. A producer that has fenced the others has nothing to wait for.
        sparing: for a message here and there: fetch little at once, and where retention was quicker, what is left.
        patience: seconds that brokers have to answer, and a message or the end to come.
    """

    def __init__(
        self, config: Config, *, high_watermark: bool = False, point_lookup: bool = False, patience: float = PATIENCE
    ) -> None:
        self._config = config
        self._patience = patience
        # What is read ends: a fetch at the end is not to wait half a second for more.
        settings: dict[str, int | str] = {"fetch.wait.max.ms": 10}
        if point_lookup:
            settings |= {"fetch.message.max.bytes": GLANCE, "queued.min.messages": 1, "fetch.queue.backoff.ms": 0}
            settings |= {"auto.offset.reset": "earliest"}
        group = f"{config.topic}.producer"
        self._consumer = KafkaConsumer(config.kafka, group, settings=settings)
        self._ends_of = self._consumer
        if high_watermark:
            self._ends_of = KafkaConsumer(config.kafka, group, committed=False, settings=settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._consumer.close()
        if self._ends_of is not self._consumer:
            self._ends_of.close()

    def control(self) -> ControlState:
        """Everything that the control topic says."""
        topic = self._config.control_topic
        low, high = self._ends(topic, 0)
        return control_state((message.key or b"", message.value) for message in self._between(topic, 0, low, high))

    def control_end(self) -> int:
        """Where the control topic ends, at least: what is written later stands behind it."""
        return self._ends(self._config.control_topic, 0)[1]

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; 0 when there is no such topic."""
        return self._consumer.partitions(topic, self._patience)

    def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset that is kept of a partition of the event topic, and the one after the last."""
        return self._ends(self._config.topic, partition)

    def position(self) -> PositionRecord | None:
        """The newest position; None in a new log. A producer may be at work: what it adds meanwhile is left out."""
        low, high = self._ends(self._config.position_topic, 0)
        message = self._newest(self._config.position_topic, 0, low, high)
        return position_record(_value(message, self._config.position_topic)) if message else None

    def prepared(self) -> PreparedState:
        """Everything that is kept of XA transactions, without the pieces themselves: they are read over."""
        topic = self._config.prepared_topic
        low, high = self._ends(topic, 0)
        found = PreparedReader()
        for message in self._between(topic, 0, low, high):
            found.accept(message.offset, message.key or b"", message.value)
        return found.state(high)

    def prepared_end(self) -> int:
        """Where the topic of XA transactions ends, at least: what is written later stands behind it."""
        return self._ends(self._config.prepared_topic, 0)[1]

    def prepared_messages(self, attempt: str, start: int, count: int) -> Iterator[bytes]:
        """The messages that are kept of a prepared transaction, in order.

        Args:
            attempt: under which it was written.
            start: an offset that is not behind the first of them.
            count: how many there are.

        Raises:
            LogDamaged: they are not all there.
        """
        topic, given = self._config.prepared_topic, 0
        low, high = self._ends(topic, 0)
        for message in self._between(topic, 0, max(low, start), high):
            if given < count and message.value is not None and message.key == message_key(attempt, given):
                given += 1
                yield message.value
            if given == count:
                return
        if given != count:
            raise LogDamaged(
                "What is kept of a prepared transaction is not all there",
                topic=topic,
                attempt=attempt,
                messages=count,
                found=given,
            )

    def tail(self, partition: int, before: int | None = None) -> TailFound:
        """What stands last in a partition of the event topic, or last before an offset."""
        low, high = self._ends(self._config.topic, partition)
        high = high if before is None else min(before, high)
        message = self._newest(self._config.topic, partition, low, high)
        if message is None:
            return TailFound(start=low, end=high)
        place = first_fields(_value(message, self._config.topic), f"{self._config.topic}-{partition}@{message.offset}")
        return TailFound(place.seqno if place.finishes else place.prev_seqno, place.epoch, low, high)

    def fragments(self, partition: int, start: int, end: int) -> Generator[tuple[int, bytes], None, None]:
        """The messages of a partition of the event topic with offsets from `start` to before `end`, with offsets."""
        with closing(self._between(self._config.topic, partition, start, end)) as messages:
            for message in messages:
                yield message.offset, _value(message, self._config.topic)

    def first(self, partition: int, start: int, end: int) -> tuple[int, bytes] | None:
        """The first of them, None where there is none."""
        with closing(self.fragments(partition, start, end)) as found:
            return next(found, None)

    def first_header(self, partition: int) -> FirstFields | None:
        """What stands first in a partition of the event topic; None when it holds nothing."""
        return self._first(partition, *self._ends(self._config.topic, partition))

    def after(self, partition: int, upto: Seqno) -> tuple[int, Seqno | None]:
        """Where a partition of the event topic goes on behind an event, found without reading what is before it.

        Args:
            partition: of the event topic.
            upto: a finished event, of any partition.

        Returns:
            An offset, before which stands whatever finishes the partition's events up to that one; and the last of
            these. The offset is that of the partition's beginning where none of them is there any more: the event is
            then that which the first message names before it, the one that lost its beginning where that is the case
            (both may be above `upto`), None where no message is there.
        """
        topic = self._config.topic
        low, high = self._ends(topic, partition)
        start = max(low, high - FIRST_LOOK)
        found = self._finishing(partition, start, high, upto)
        if found is None and start > low:
            width, end = FIRST_LOOK, self.offset_of(partition, upto + 1, (low, high))
            while found is None and end > low:
                start = max(low, end - width)
                found = self._finishing(partition, start, end, upto)
                width, end = width * GROWTH, start
        if found is not None:
            return found
        first = self._first(partition, low, high)
        if first is None:
            return low, None
        return low, first.seqno if first.fragno and first.seqno > upto else first.prev_seqno

    def first_of(self, partition: int, seqno: int, bounds: tuple[int, int] | None = None) -> tuple[int, Seqno | None]:
        """The first message of a partition of the event topic that is not of an earlier event, found by halving.

        It may also be the marker of the event's epoch, or a fragment of the same number that was given up. As many
        single messages are read as the number of offsets has bits: best by a `sparing` reader.

        Args:
            partition: which.
            seqno: of the event. It may be of another partition: then it is what comes after it in this one.
            bounds: the first offset, and the one after the last; asked for when not given.

        Returns:
            Its offset, and the seqno that it bears; the end, and None, when there is none.
        """
        low, high = bounds or self.bounds(partition)

        def read(offset: int) -> Probe[FirstFields] | None:
            found = self.first(partition, offset, high)
            return found and Probe(found[0], first_fields(found[1], f"{self._config.topic}-{partition}@{found[0]}"))

        met = first_of(read, low, high, seqno)
        return (met.offset, met.header.seqno) if met else (high, None)

    def offset_of(self, partition: int, seqno: int, bounds: tuple[int, int] | None = None) -> int:
        """Where to begin to read a partition for an event and those behind it: the offset of `first_of`."""
        return self.first_of(partition, seqno, bounds)[0]

    def _finishing(self, partition: int, start: int, end: int, upto: Seqno) -> tuple[int, Seqno] | None:
        """The offset behind the last fragment between two offsets that finishes an event up to one, and that event."""
        found = None
        for offset, place in self._places(partition, start, end):
            if place.seqno > upto:
                break
            if place.finishes:
                found = offset + 1, place.seqno
        return found

    def _first(self, partition: int, low: int, high: int) -> FirstFields | None:
        return next((place for _, place in self._places(partition, low, high)), None)

    def _places(self, partition: int, start: int, end: int) -> Generator[tuple[int, FirstFields], None, None]:
        with closing(self.fragments(partition, start, end)) as found:
            for offset, value in found:
                yield offset, first_fields(value, f"{self._config.topic}-{partition}@{offset}")

    def since(self, partition: int, seqno: Seqno) -> Generator[bytes, None, None]:
        """The fragments and markers of a partition of the event topic that are not of earlier events."""
        low, high = self.bounds(partition)
        with closing(self.fragments(partition, self.offset_of(partition, seqno, (low, high)), high)) as found:
            for _, value in found:
                yield value

    def _newest(self, topic: str, partition: int, low: int, high: int) -> KafkaMessage | None:
        """The newest message, found by looks that go further and further back."""
        width, end = FIRST_LOOK, high
        while end > low:
            start = max(low, end - width)
            newest = None
            for message in self._between(topic, partition, start, end):
                newest = message
            if newest is not None:
                return newest
            width, end = width * GROWTH, start
        return None

    def _ends(self, topic: str, partition: int) -> tuple[int, int]:
        return self._ends_of.bounds(topic, partition, self._patience)

    def _between(self, topic: str, partition: int, start: int, end: int) -> Generator[KafkaMessage, None, None]:
        """Committed messages with offsets from `start` to before `end`."""
        if start >= end:
            return
        self._consumer.assign(topic, {partition: start})
        try:
            while True:
                found = self._consumer.poll(self._patience)
                if found is None:
                    at = f"{topic}-{partition}"
                    raise BrokerUnavailable("Kafka sends no more before the end is reached", partition=at, end=end)
                if found.offset >= end:
                    return
                if isinstance(found, KafkaMessage):
                    yield found
                    if found.offset + 1 >= end:
                        return
        finally:
            self._consumer.unassign()


def _value(message: KafkaMessage, topic: str) -> bytes:
    if message.value is None:
        raise LogDamaged("a message without value", topic=topic, partition=message.partition, offset=message.offset)
    return message.value
