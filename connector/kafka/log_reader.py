"""Reads a log's topics to their ends: committed messages only.

A read ends at librdkafka's end-of-partition event. The last message's offset cannot show the end: commit markers and
aborted messages have offsets too, and are never delivered.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from types import TracebackType
from typing import Final, Self

from connector.config.model import Config
from connector.errors import LogDamaged
from connector.kafka.consumer import PATIENCE, KafkaConsumer, KafkaMessage, MessageTime, PartitionEnd
from connector.kafka.prepared_records import PreparedReader, PreparedState, message_key
from connector.kafka.records import control_state, position_record
from connector.log.epochs.control import ControlState
from connector.log.epochs.history import History
from connector.log.format.first_fields import FirstFields, first_fields
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.reading.retained import Retained, retained
from connector.log.reading.search import FIRST_PROBE, Probe, backward_probes, first_of
from connector.log.transaction.position import PositionRecord
from connector.log.writing.tail import TailFound

_HIDDEN: Final = (
    "a Kafka transaction is open there and hides what follows: if none of this service is at work, see "
    "kafka-transactions.sh find-hanging; or the broker has lost the partition's end since"
)
PROBE_BYTES: Final = 64 << 10  # of a fetch; a broker always sends at least one batch


class LogReader:
    """Reads a log's topics. It joins no consumer group and commits no offsets.

    Every method raises BrokerUnavailable when the brokers do not answer, PreflightError when they refuse access, and
    LogDamaged for a record that this package did not write.

    A Kafka transaction becomes visible in one partition before another. A caller that compares partitions while a
    producer may be at work reads to the high watermark: a partition then ends at its high watermark, not at its last
    stable offset, and reading waits for open transactions before that end.

    Args:
        config: the service and its brokers.
        high_watermark: read to the high watermark. A producer that has fenced the others does not need it.
        point_lookup: fetch little at once, for single messages; an offset that retention has deleted means the first
            one that is left.
        patience: seconds for an answer of the brokers, and for a message or the end to arrive.
        role: the end of the group's name, `thl.<service>.<role>`, by which brokers' logs and quotas tell the readers
            apart.
    """

    def __init__(
        self,
        config: Config,
        *,
        high_watermark: bool = False,
        point_lookup: bool = False,
        patience: float = PATIENCE,
        role: str = "reader",
    ) -> None:
        self._config = config
        self._patience = patience
        # Reads end: a fetch at the end must not wait half a second for more.
        settings: dict[str, int | str] = {"fetch.wait.max.ms": 10}
        if point_lookup:
            settings |= {"fetch.message.max.bytes": PROBE_BYTES, "queued.min.messages": 1, "fetch.queue.backoff.ms": 0}
            settings |= {"auto.offset.reset": "earliest"}
        group = f"{config.topic}.{role}"
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

    def control(self, *, may_lack: bool = False) -> ControlState:
        """The content of the control topic.

        Args:
            may_lack: true: that of an empty topic if there is none. Not for a producer: brokers may not know a new
                topic for a moment, and it would begin a second log.
        """
        topic = self._config.control_topic
        if may_lack and not self.partitions(topic):
            return control_state(())
        low, high = self._ends(topic, 0)
        return control_state((message.key or b"", message.value) for message in self._between(topic, 0, low, high))

    def control_end(self) -> int:
        """The end offset of the control topic: later records have it or a larger one."""
        return self._ends(self._config.control_topic, 0)[1]

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic; 0 when there is no such topic."""
        return self._consumer.partitions(topic, self._patience)

    def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset of a partition of the event topic, and the one after its last."""
        return self._ends(self._config.topic, partition)

    def position(self) -> PositionRecord | None:
        """The newest position; None in a new log. Positions that a producer adds meanwhile are left out."""
        low, high = self._ends(self._config.position_topic, 0)
        message = self._newest(self._config.position_topic, 0, low, high)
        return position_record(_value(message, self._config.position_topic)) if message else None

    def prepared(self) -> PreparedState:
        """The prepared XA transactions, without their messages."""
        topic = self._config.prepared_topic
        low, high = self._ends(topic, 0)
        found = PreparedReader()
        for message in self._between(topic, 0, low, high):
            found.accept(message.offset, message.key or b"", message.value)
        return found.state(high)

    def prepared_end(self) -> int:
        """The end offset of the topic of prepared transactions: later records have it or a larger one."""
        return self._ends(self._config.prepared_topic, 0)[1]

    def prepared_messages(self, attempt: str, start: int, count: int) -> Iterator[bytes]:
        """The messages of a prepared transaction, in order.

        Args:
            attempt: the name under which they were written.
            start: an offset at or before the first of them.
            count: number of the messages.

        Raises:
            LogDamaged: some are missing.
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
                "messages of a prepared transaction are missing",
                topic=topic,
                attempt=attempt,
                messages=count,
                found=given,
            )

    def tail(self, partition: int, before: int | None = None) -> TailFound:
        """The last record of a partition of the event topic, or the last one before an offset."""
        low, high = self._ends(self._config.topic, partition)
        high = high if before is None else min(before, high)
        message = self._newest(self._config.topic, partition, low, high)
        if message is None:
            return TailFound.of(None, start=low, end=high)
        newest = first_fields(_value(message, self._config.topic), f"{self._config.topic}-{partition}@{message.offset}")
        return TailFound.of(newest, start=low, end=high)

    def fragments(self, partition: int, start: int, end: int) -> Generator[tuple[int, bytes], None, None]:
        """Offsets and messages of a partition of the event topic, from `start` to before `end`."""
        with closing(self._between(self._config.topic, partition, start, end)) as messages:
            for message in messages:
                yield message.offset, _value(message, self._config.topic)

    def published_at(self, partition: int, offset: int) -> MessageTime:
        """The time of a message of the event topic."""
        return self._consumer.message_time(self._config.topic, partition, offset, self._patience)

    def first(self, partition: int, start: int, end: int) -> tuple[int, bytes] | None:
        """The first of `fragments`; None if there is none."""
        with closing(self.fragments(partition, start, end)) as found:
            return next(found, None)

    def incomplete_upto(
        self, spans: Mapping[int, tuple[int, int]], history: History, position: PositionRecord | None
    ) -> Seqno:
        """The last finished event that may have messages before the spans, so that they hold every later one whole.

        Args:
            spans: partition → its first offset to read, and the one after the last.
            history, position: the log's and the producer's; see `connector.log.reading.retained`.

        Returns:
            NO_SEQNO: no finished event lies before the spans.
        """
        left = (self.retained(partition, span, history, position) for partition, span in spans.items() if span[0])
        return max((one.incomplete for one in left), default=NO_SEQNO)

    def retained(
        self, partition: int, span: tuple[int, int], history: History, position: PositionRecord | None
    ) -> Retained:
        """The rest of a partition, whose offsets are `span`; see `connector.log.reading.retained`."""
        with closing(self._headers(partition, *span)) as messages:
            return retained(messages, partition, span[1], history, position)

    def after(self, partition: int, upto: Seqno, history: History, position: PositionRecord) -> tuple[int, Seqno]:
        """The offset after the last event of a partition up to a seqno, found by probes from the end backwards.

        Args:
            partition: a partition of the event topic.
            upto: a finished event, of any partition.
            history, position: the log's and the producer's; see `connector.log.reading.retained`.

        Returns:
            The offset, and the partition's last event before it. Where retention has deleted all events up to `upto`,
            the offset is the first one from which the partition can be read, and the event is the last one of which
            messages may be deleted (it may be above `upto`).
        """
        topic = self._config.topic
        low, high = self._ends(topic, partition)
        newest = max(low, high - FIRST_PROBE)
        found = self._finishing(partition, newest, high, upto)
        if found is None and newest > low:
            probes = backward_probes(low, self.offset_of(partition, upto + 1, (low, high)))
            tried = (self._finishing(partition, probe.start, probe.stop, upto) for probe in probes)
            found = next(filter(None, tried), None)
        if found is not None:
            return found
        left = self.retained(partition, (low, high), history, position)
        return left.offset, left.incomplete if low else NO_SEQNO

    def first_of(self, partition: int, seqno: int, bounds: tuple[int, int] | None = None) -> tuple[int, Seqno | None]:
        """The first message of a partition that belongs to an event or a later one, found by binary search.

        It may also be the marker of the event's epoch, or a fragment of an attempt that was given up. The search reads
        as many single messages as the number of offsets has bits: best with `point_lookup`.

        Args:
            partition: a partition of the event topic.
            seqno: the event's seqno; if another partition has the event, the result is this partition's next event.
            bounds: the first offset, and the one after the last; read when not given.

        Returns:
            The message's offset and seqno; the end and None when there is none.
        """
        low, high = bounds or self.bounds(partition)

        def read(offset: int) -> Probe[FirstFields] | None:
            found = self.first(partition, offset, high)
            return found and Probe(found[0], first_fields(found[1], f"{self._config.topic}-{partition}@{found[0]}"))

        first = first_of(read, low, high, seqno)
        return (first.offset, first.header.seqno) if first else (high, None)

    def offset_of(self, partition: int, seqno: int, bounds: tuple[int, int] | None = None) -> int:
        """The offset to read a partition from for an event and later ones: that of `first_of`."""
        return self.first_of(partition, seqno, bounds)[0]

    def _finishing(self, partition: int, start: int, end: int, upto: Seqno) -> tuple[int, Seqno] | None:
        """The offset after the last fragment in a range that finishes an event up to `upto`, and that event."""
        found = None
        for offset, fields in self._headers(partition, start, end):
            if fields.seqno > upto:
                break
            if fields.finishes:
                found = offset + 1, fields.seqno
        return found

    def _headers(self, partition: int, start: int, end: int) -> Generator[tuple[int, FirstFields], None, None]:
        with closing(self.fragments(partition, start, end)) as found:
            for offset, value in found:
                yield offset, first_fields(value, f"{self._config.topic}-{partition}@{offset}")

    def since(self, partition: int, seqno: Seqno) -> Generator[bytes, None, None]:
        """The fragments and markers of a partition of the event topic from an event on."""
        low, high = self.bounds(partition)
        with closing(self.fragments(partition, self.offset_of(partition, seqno, (low, high)), high)) as found:
            for _, value in found:
                yield value

    def _newest(self, topic: str, partition: int, low: int, high: int) -> KafkaMessage | None:
        """The newest message, found by probes that go further and further back."""
        for probe in backward_probes(low, high):
            newest = None
            for message in self._between(topic, partition, probe.start, probe.stop):
                newest = message
            if newest is not None:
                return newest
        return None

    def _ends(self, topic: str, partition: int) -> tuple[int, int]:
        return self._ends_of.bounds(topic, partition, self._patience)

    def _between(self, topic: str, partition: int, start: int, end: int) -> Generator[KafkaMessage, None, None]:
        """Committed messages from offset `start` to before `end`."""
        if start >= end:
            return
        self._consumer.assign(topic, {partition: start})
        hint = ""
        try:
            while True:
                found = self._consumer.poll(self._patience)
                if found is None:
                    error = self._consumer.silent("the end of an offset range", at=f"{topic}-{partition}", end=end)
                    error.hint = error.hint or hint
                    raise error
                if found.offset >= end:
                    return
                if isinstance(found, PartitionEnd):
                    hint = _HIDDEN
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
