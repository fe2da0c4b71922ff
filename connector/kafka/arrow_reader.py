"""Messages of the event topic as Arrow batches, read without Spark."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from connector.config.kafka import Kafka
from connector.kafka.consumer import PATIENCE, KafkaConsumer, KafkaMessage
from connector.kafka.message_batch import batch_of
from connector.log.compact.scan import Messages, Scanner
from connector.log.reading.event_sequencer import EventSequencer, Release, Voided

MESSAGES: Final = 500  # maximum number of messages of a batch
BYTES: Final = 16 << 20  # approximate maximum bytes of a batch


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
            A table in the form of `batch_of`; None once every partition's end was reached.

        Raises:
            BrokerUnavailable: the brokers do not answer.
        """
        found: dict[int, list[KafkaMessage]] = {}
        count = size = 0
        while self._reading and count < MESSAGES and size < BYTES:
            message = self._consumer.poll(PATIENCE)
            if message is None:
                raise self._consumer.silent("the end of the log", topic=self._topic)
            if isinstance(message, KafkaMessage):
                self._reading.add(message.partition)
                found.setdefault(message.partition, []).append(message)
                count, size = count + 1, size + len(message.value or b"")
            else:
                self._reading.discard(message.partition)
        if not found:
            return None
        return pa.Table.from_batches([batch_of(messages) for _, messages in sorted(found.items())])


def read_in_order(
    kafka: Kafka, topic: str, offsets: Mapping[int, int], sequencer: EventSequencer[bytes, Messages]
) -> Generator[Release[bytes] | Voided, None, None]:
    """Read the event topic to its end; yield what a sequencer releases, in the order of the events.

    Args:
        kafka, topic, offsets: as of `ArrowReader`.
        sequencer: at the event that comes next.

    Raises:
        BrokerUnavailable, LogDamaged: the log cannot be read.
    """
    scanner = Scanner(topic)
    with ArrowReader(kafka, topic, offsets) as log:
        while (batch := log.next()) is not None:
            for part in batch.to_batches():
                messages = (one for found in scanner.scan(part) for one in found)
                for message, value in zip(messages, part["value"].to_pylist(), strict=True):
                    sequencer.accept(message.header, message.partition, message.offset, value or b"")
            # No ranges: it was given none.
            yield from (one for one in sequencer.release() if isinstance(one, Release | Voided))
