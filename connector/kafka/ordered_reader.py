"""The log from given offsets on without Spark: for what looks at a part of it once, before anything is applied."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from connector.config.model import Kafka
from connector.errors import BrokerUnavailable
from connector.kafka.consumer import OnDemand

PATIENCE: Final = 30.0  # seconds without a message or an end
MESSAGES: Final = 500  # at once
BYTES: Final = 16 << 20  # or about so many


class OrderedReader:
    """Committed messages of one topic.

    Args:
        kafka: brokers and their properties.
        topic: the event topic.
        offsets: partition → first offset, for every partition.
    """

    def __init__(self, kafka: Kafka, topic: str, offsets: Mapping[int, int]) -> None:
        self._topic = topic
        wanted = {"enable.partition.eof": True, "auto.offset.reset": "error", "check.crcs": True}
        self._consumer = OnDemand(kafka, f"{topic}.direct", {**wanted, "queued.max.messages.kbytes": BYTES >> 10})
        self._offsets = dict(offsets)
        self._reading: set[int] = set()

    def __enter__(self) -> Self:
        self._consumer.get().assign([TopicPartition(self._topic, *one) for one in self._offsets.items()])
        self._reading = set(self._offsets)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def next(self) -> pa.Table | None:
        """The next messages.

        Returns:
            Columns partition, offset, value, as Spark hands them over; None once every partition's end was reached.

        Raises:
            BrokerUnavailable: the brokers do not answer.
        """
        found: dict[int, list[Message]] = {}
        count = size = 0
        while self._reading and count < MESSAGES and size < BYTES:
            message = self._polled()
            if message is None:
                continue
            found.setdefault(message.partition() or 0, []).append(message)
            count, size = count + 1, size + len(message.value() or b"")
        if not found:
            return None
        return pa.Table.from_batches([_batch(number, messages) for number, messages in sorted(found.items())])

    def _polled(self) -> Message | None:
        """One message, or None where a partition's end is told."""
        try:
            message = self._consumer.get().poll(PATIENCE)
        except KafkaException as error:
            raise BrokerUnavailable(f"the log cannot be read: {error.args[0].str()}", topic=self._topic) from error
        if message is None:
            raise BrokerUnavailable("Kafka sends no more before the end is reached", topic=self._topic)
        refused = message.error()
        if refused is None:
            self._reading.add(message.partition() or 0)
            return message
        if refused.code() != KafkaError._PARTITION_EOF:
            raise BrokerUnavailable(f"the log cannot be read: {refused.str()}", topic=self._topic)
        self._reading.discard(message.partition() or 0)
        return None


def _batch(partition: int, messages: list[Message]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "partition": pa.array([partition] * len(messages), pa.int32()),
            "offset": pa.array([message.offset() for message in messages], pa.int64()),
            "value": pa.array([message.value() for message in messages], pa.large_binary()),
        }
    )
