"""Creates and wraps every Kafka consumer; all readers of a log use it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable, ConnectorError
from connector.kafka.client import LOG, LOST, Refusals, checked_properties, failure, properties

PATIENCE: Final = 30.0  # seconds for an answer
QUIET: Final = 3.0  # seconds without one, after which a caller with twice the patience or more says what it waits for
AT_ONCE: Final = 500  # messages
DAY_MS: Final = 86_400_000  # the longest that librdkafka allows
Property = str | int | float | bool

Answer = TypeVar("Answer")

_UNKNOWN: Final = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC))
_MISSING: Final = frozenset((KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE))


class KafkaMessage(NamedTuple):
    """A message as Kafka returns it; `value` is None for a tombstone."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class MessageTime(NamedTuple):
    """The time of a message, µs since 1970 UTC.

    It is the broker's, of the time when it appended the message, where the topic has `message.timestamp.type`
    LogAppendTime; else the producer's, of the time when it sent it.
    """

    at: int
    by_broker: bool


class PartitionEnd(NamedTuple):
    """The consumer has reached a partition's end: every message before `offset` was returned."""

    partition: int
    offset: int


class OffsetMissing(BrokerUnavailable):
    """The offset to read is outside the partition: retention deleted it, or the topic was re-created."""

    def __init__(self, message: str, *, partition: int, topic: str | None, begin: int | None) -> None:
        super().__init__(message, topic=topic, partition=partition, begin=begin)
        self.partition = partition


class KafkaConsumer:
    """Reads partitions that its caller assigns. It joins no group and commits nothing unless its caller does.

    It connects when it is first used. It refuses to guess an offset: one that is not there raises `OffsetMissing`.
    Every method raises BrokerUnavailable when the brokers do not answer, PreflightError when they refuse access, and
    ConfigError when librdkafka refuses a property.

    Args:
        kafka: brokers and their properties: security, timeouts.
        group: `group.id`: the name that the brokers' access rules know, and the owner of committed offsets.
        committed: return only messages of committed Kafka transactions.
        defaults: librdkafka properties that `kafka.properties` may override.
        settings: librdkafka properties that override `kafka.properties`.
    """

    def __init__(
        self,
        kafka: Kafka,
        group: str,
        *,
        committed: bool = True,
        defaults: Mapping[str, Property] | None = None,
        settings: Mapping[str, Property] | None = None,
    ) -> None:
        fixed: dict[str, Property] = {
            "group.id": group,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "max.poll.interval.ms": DAY_MS,  # a reader may pause between two polls for as long as it has work
        }
        self._group = group
        self._bootstrap = kafka.bootstrap
        self._announced = False
        self._refusals = Refusals()
        self._properties = {**(defaults or {}), **properties(kafka), **fixed, **(settings or {})}
        self._assigned: Mapping[int, int] = {}
        self._made: Consumer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._made is not None:
            self._made.close()

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Read these partitions of a topic, each from its offset, instead of those read until now."""
        self._refusals.forget()
        try:
            self._consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])
        except KafkaException as error:
            raise self._failure(error, "a topic cannot be read", topic=topic) from error
        self._assigned = offsets

    def unassign(self) -> None:
        """Read no partition, and fetch nothing ahead."""
        self._consumer.unassign()

    def pause(self, topic: str, partitions: Collection[int]) -> None:
        """Fetch no more of some assigned partitions until `resume`."""
        self._consumer.pause([TopicPartition(topic, partition) for partition in partitions])

    def resume(self, topic: str, partitions: Collection[int]) -> None:
        """Fetch paused partitions again."""
        self._consumer.resume([TopicPartition(topic, partition) for partition in partitions])

    def poll(self, timeout: float) -> KafkaMessage | PartitionEnd | None:
        """The next message or partition end.

        Args:
            timeout: seconds to wait for it.

        Returns:
            None: there was none in time, or an error that librdkafka retries by itself.

        Raises:
            OffsetMissing: the offset to read is not there.
        """
        try:
            received = self._consumer.poll(timeout)
        except KafkaException as error:
            raise self._failure(error, "the log cannot be read") from error
        return None if received is None else self._converted(received)

    def message_time(self, topic: str, partition: int, offset: int, timeout: float = PATIENCE) -> MessageTime:
        """The time of one message, whose partition is assigned for that in place of others.

        Not a field of `KafkaMessage`: to ask librdkafka for it costs most of what a message costs otherwise.

        Raises:
            BrokerUnavailable: the message does not come in time.
            OffsetMissing: there is no such message.
        """
        self.assign(topic, {partition: offset})
        try:
            received = self._consumer.poll(timeout)
        except KafkaException as error:
            raise self._failure(error, "the log cannot be read") from error
        finally:
            self.unassign()
        found = None if received is None else self._converted(received)
        if received is None or found is None:
            raise self.silent("that of an offset", at=f"{topic}-{partition}@{offset}")
        if not isinstance(found, KafkaMessage) or found.offset != offset:
            raise OffsetMissing("there is no message", topic=topic, partition=partition, begin=offset)
        kind, milliseconds = received.timestamp()
        return MessageTime(milliseconds * 1000, by_broker=kind == TIMESTAMP_LOG_APPEND_TIME)

    def drain(self, timeout: float, most: int = AT_ONCE) -> list[KafkaMessage | PartitionEnd]:
        """The messages and partition ends that have arrived; at least one, unless none arrives in time.

        Args:
            timeout: seconds to wait for the first.
            most: maximum number.

        Raises:
            OffsetMissing: the offset to read is not there.
        """
        first = self.poll(timeout)
        if first is None:
            return []
        try:
            received = self._consumer.consume(most - 1, 0)
        except KafkaException as error:
            raise self._failure(error, "the log cannot be read") from error
        return [first, *(one for each in received if (one := self._converted(each)) is not None)]

    def silent(self, awaited: str, **where: object) -> ConnectorError:
        """The error of a caller that has waited long enough for messages.

        Args:
            awaited: what it has waited for, as "the end of a range".
            where: ids for the error; why brokers were not reached since `assign`, if they were not, comes with them.
        """
        silent = BrokerUnavailable(f"Kafka sends no more messages before {awaited}", hint="", **where)
        return self._refusals.explain(silent)

    def bounds(self, topic: str, partition: int, timeout: float = PATIENCE) -> tuple[int, int]:
        """The first offset of a partition, and the one after its last."""
        at = f"{topic}-{partition}"
        consumer = self._consumer
        with self._refusals.asking(consumer, "a partition's ends cannot be read", partition=at):
            ends: tuple[int, int] | None = self._answer(
                lambda seconds: consumer.get_watermark_offsets(TopicPartition(topic, partition), seconds), timeout
            )
        if ends is None:
            raise BrokerUnavailable("the brokers do not return a partition's ends in time", partition=at)
        return ends

    def lag(self, topic: str, offsets: Mapping[int, int], timeout: float = PATIENCE) -> int:
        """The number of offsets from the given ones to the ends of their partitions.

        It is a bound: markers of Kafka transactions and aborted messages count.
        """
        ends = ((self.bounds(topic, partition, timeout), offset) for partition, offset in offsets.items())
        return sum(high - max(low, offset) for (low, high), offset in ends)

    def partitions(self, topic: str, timeout: float = PATIENCE) -> int:
        """The number of partitions of a topic; 0 when there is no such topic."""
        consumer = self._consumer
        with self._refusals.asking(consumer, "the brokers do not describe a topic", topic=topic):
            described = self._answer(lambda seconds: consumer.list_topics(topic, timeout=seconds), timeout)
            found = described.topics[topic]
        if found.error is None:
            return len(found.partitions)
        if found.error.code() in _UNKNOWN:
            return 0
        raise failure(found.error, "a topic cannot be read", topic=topic)

    def commit(self, topic: str, offsets: Mapping[int, tuple[int, str]], **where: object) -> None:
        """Store offsets of the group, each with metadata; wait until the brokers have them.

        Args:
            topic: the topic of the partitions.
            offsets: partition → offset and metadata.
            where: ids for the error.
        """
        asked = [TopicPartition(topic, partition, *stored) for partition, stored in offsets.items()]
        try:
            for done in self._consumer.commit(offsets=asked, asynchronous=False) or ():
                if done.error is not None:
                    raise failure(done.error, "a position is not stored", group=self._group, **where)
        except KafkaException as error:
            raise self._failure(error, "a position is not stored", group=self._group, **where) from error

    def committed(self, topic: str, partitions: Iterable[int], timeout: float = PATIENCE) -> dict[int, tuple[int, str]]:
        """Partition → offset and metadata that the group has stored; partitions without an offset are left out."""
        asked = [TopicPartition(topic, partition) for partition in partitions]
        try:
            stored = self._consumer.committed(asked, timeout=timeout)
        except KafkaException as error:
            raise self._failure(error, "the group's position cannot be read", group=self._group) from error
        return {one.partition: (one.offset, one.metadata or "") for one in stored if one.offset >= 0}

    @property
    def _consumer(self) -> Consumer:
        if self._made is None:
            with checked_properties():
                self._made = Consumer({**self._properties, "error_cb": self._refusals}, logger=LOG)
        return self._made

    def _answer(self, ask: Callable[[float], Answer], timeout: float) -> Answer:
        """Ask the brokers; log a warning once if they are silent for some seconds, and ask for the rest of the time."""
        if self._announced or timeout < 2 * QUIET:
            return ask(timeout)
        try:
            if (answer := ask(QUIET)) is not None:
                return answer
        except KafkaException as error:
            if error.args[0].code() not in LOST:
                raise
        self._announced = True
        rest = timeout - QUIET
        LOG.warning("waiting for the brokers of kafka.bootstrap", extra={"bootstrap": self._bootstrap, "seconds": rest})
        return ask(rest)

    def _converted(self, received: Message) -> KafkaMessage | PartitionEnd | None:
        partition, offset, error = received.partition() or 0, received.offset() or 0, received.error()
        if error is None:
            return KafkaMessage(partition, offset, received.key(), received.value())
        if error.code() == KafkaError._PARTITION_EOF:
            return PartitionEnd(partition, offset)
        if error.retriable():
            return None
        if error.code() in _MISSING:
            raise OffsetMissing(
                f"the log cannot be read: {error.str()}",
                topic=received.topic(),
                partition=partition,
                begin=self._assigned.get(partition),
            )
        raise failure(error, "the log cannot be read", at=f"{received.topic()}-{partition}@{offset}")

    def _failure(self, error: KafkaException, doing: str, **where: object) -> ConnectorError:
        return self._refusals.failure(error, doing, **where)
