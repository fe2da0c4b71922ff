"""Messages of the event topic as Arrow batches, read without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable
from connector.kafka.consumer import PATIENCE, KafkaConsumer, KafkaMessage

MESSAGES: Final = 500  # maximum number of messages of a batch
BYTES: Final = 16 << 20  # approximate maximum bytes of a batch
_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "partition": pa.int32(),
    "offset": pa.int64(),
    "value": pa.large_binary(),
}
MESSAGES_SCHEMA: Final = pa.schema(_COLUMNS)


class ArrowReader:
    """Reads one topic's committed messages from given offsets to the partitions' ends.

    Each partition keeps its order; `connector.log.reading.event_sequencer` orders events across partitions.

    Args:
        kafka: brokers and their properties.
        topic: the event topic.
        offsets: partition → first offset, for every partition.
    """

    def __init__(self, kafka: Kafka, topic: str, offsets: Mapping[int, int]) -> None:
        self._topic = topic
        self._consumer = KafkaConsumer(kafka, f"{topic}.direct", settings={"queued.max.messages.kbytes": BYTES >> 10})
        self._offsets = dict(offsets)
        self._reading: set[int] = set()  # partitions whose end has not been reached

    def __enter__(self) -> Self:
        self._consumer.assign(self._topic, self._offsets)
        self._reading = set(self._offsets)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def next(self) -> pa.Table | None:
        """The next messages.

        Returns:
            A table in the form of `arrow_batch`; None once every partition's end was reached.

        Raises:
            BrokerUnavailable: the brokers do not answer.
        """
        found: dict[int, list[KafkaMessage]] = {}
        count = size = 0
        while self._reading and count < MESSAGES and size < BYTES:
            message = self._consumer.poll(PATIENCE)
            if message is None:
                raise BrokerUnavailable("Kafka sends no more before the end is reached", topic=self._topic)
            if isinstance(message, KafkaMessage):
                self._reading.add(message.partition)
                found.setdefault(message.partition, []).append(message)
                count, size = count + 1, size + len(message.value or b"")
            else:
                self._reading.discard(message.partition)
        if not found:
            return None
        return pa.Table.from_batches([arrow_batch(messages) for _, messages in sorted(found.items())])


def arrow_batch(messages: Sequence[KafkaMessage]) -> pa.RecordBatch:
    """Messages in the columns that Spark returns and the scanner reads: partition, offset, value."""
    return message_batch(
        [message.partition for message in messages],
        [message.offset for message in messages],
        [message.value for message in messages],
    )


def message_batch(partitions: Sequence[int], offsets: Sequence[int], values: Sequence[bytes | None]) -> pa.RecordBatch:
    """The columns of messages as a batch."""
    columns = (
        pa.array(one, kind.type) for one, kind in zip((partitions, offsets, values), MESSAGES_SCHEMA, strict=True)
    )
    return pa.RecordBatch.from_arrays(list(columns), schema=MESSAGES_SCHEMA)
