"""What the log's small topics say, and where its partitions begin and end: read once, before the log itself.

The twin of the producer's Kafka client. Only what Kafka transactions have committed is read, to each topic's end; in
no consumer group, no offset is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from connector.config import Kafka
from connector.errors import BrokerUnavailable, PreflightError

PATIENCE: Final = 15.0  # seconds for an answer

_REFUSED: Final = frozenset(
    (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
        KafkaError._INVALID_ARG,
    )
)


class Topics:
    """A reader of whole topics.

    Args:
        kafka: brokers and their properties.
        group: a group id, which librdkafka asks for; never joined.
    """

    def __init__(self, kafka: Kafka, group: str) -> None:
        self._refused: KafkaError | None = None
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                **kafka.properties,
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "error_cb": self._noted,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; 0 when there is no such topic.

        Raises:
            BrokerUnavailable: the brokers do not answer.
            PreflightError: they refuse us.
        """
        try:
            found = self._consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
        except KafkaException as error:
            raise self._failure(error.args[0], "the brokers do not tell of the topic", topic) from error
        if found.error is None:
            return len(found.partitions)
        if found.error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            return 0
        raise self._failure(found.error, "the topic cannot be read", topic)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The first offset that is kept, and the one after the last.

        Raises:
            BrokerUnavailable, PreflightError: see `partitions`.
        """
        try:
            found = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=PATIENCE)
        except KafkaException as error:
            raise self._failure(
                error.args[0], "the ends of a partition are not told", f"{topic}-{partition}"
            ) from error
        if found is None:
            raise BrokerUnavailable("the ends of a partition are not told in time", at=f"{topic}-{partition}")
        low, high = found
        return low, high

    def messages(self, topic: str) -> Iterator[tuple[bytes, bytes]]:
        """Key and value of every committed message of a topic's partition 0, oldest first.

        Raises:
            BrokerUnavailable, PreflightError: see `partitions`.
        """
        low, high = self.bounds(topic, 0)
        if low >= high:
            return
        self._consumer.assign([TopicPartition(topic, 0, low)])
        try:
            while True:
                # The end is told by librdkafka's own event: transaction markers have offsets too.
                message = self._consumer.poll(PATIENCE)
                if message is None:
                    raise BrokerUnavailable("the topic's end is not reached in time", at=f"{topic}-0")
                error = message.error()
                if error is None:
                    yield message.key() or b"", message.value() or b""
                elif error.code() == KafkaError._PARTITION_EOF:
                    return
                else:
                    raise self._failure(error, "the topic cannot be read", topic)
        finally:
            self._consumer.unassign()

    def _noted(self, error: KafkaError) -> None:
        if error.code() in _REFUSED:
            self._refused = error

    def _failure(self, error: KafkaError, doing: str, where: str) -> BrokerUnavailable | PreflightError:
        refused = error if error.code() in _REFUSED else self._refused
        if refused is not None:
            return PreflightError(
                f"{doing}: {refused.str()}", hint="kafka.properties, and what the brokers allow this user", at=where
            )
        return BrokerUnavailable(f"{doing}: {error.str()}", hint="are the brokers of kafka.bootstrap up?", at=where)
