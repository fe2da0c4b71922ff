"""Large messages: fetched one by one, when their turn comes.

A fragment of a large row is as large as a message may be. Spark's heap in continuous mode, and each of the Python
workers that read at the same time, would hold a message several times. So Spark and its tasks return the offsets of
such messages, and their bytes are read from Kafka here. Large messages often follow each other, so the consumer reads
on from one to the next; an assignment at another offset costs a fetch.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from connector.config.kafka import Kafka
from connector.errors import LogDamaged
from connector.kafka.consumer import PATIENCE, KafkaConsumer, KafkaMessage, OffsetMissing
from connector.kafka.message_batch import batch_of

LARGE: Final = 256 << 10  # bytes of a message that Spark and its tasks still carry
LARGEST: Final = 1 << 30  # bytes; about the most that Kafka's protocol can send in one answer
# Bytes of a fetch: brokers send one batch of the producer's all the same, which has 1 MB or one message.
ONE_BATCH: Final = 1
NEAR: Final = 32  # messages up to which reading and dropping them is cheaper than a new assignment


class LargeMessages:
    """Fetches single messages of one topic; connects when the first is asked for.

    Args:
        kafka: brokers and their properties.
        topic: the event topic.
    """

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._topic = topic
        self._next: tuple[int, int] | None = None  # the partition that is read, and the offset that comes next
        self._consumer = KafkaConsumer(
            kafka,
            f"{topic}.large",
            settings={
                "enable.partition.eof": False,
                # Little is fetched ahead: it takes memory, and most of it would be dropped.
                "queued.max.messages.kbytes": 1024,
                "fetch.message.max.bytes": ONE_BATCH,
                # By default librdkafka looks once a second whether the queue has room again.
                "fetch.queue.backoff.ms": 1,
                # A new assignment waits for the last fetch's answer, and at the log's end that has nothing to bring.
                "fetch.wait.max.ms": 10,
                "fetch.max.bytes": LARGEST - 1024,
                "receive.message.max.bytes": LARGEST,
            },
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def fetch(self, partition: int, offset: int) -> pa.RecordBatch:
        """One message, in the form of a batch that Spark returns.

        Raises:
            BrokerUnavailable: the brokers do not answer.
            LogDamaged: the message was deleted.
        """
        at = f"{self._topic}-{partition}@{offset}"
        if self._next is None or self._next[0] != partition or not 0 <= offset - self._next[1] <= NEAR:
            self._consumer.assign(self._topic, {partition: offset})
        self._next = (partition, offset + 1)
        try:
            message = self._at(offset)
        except OffsetMissing as error:
            raise LogDamaged("a message that was there is gone", at=at, cause=error.message) from error
        if message is None:
            raise self._consumer.silent("the offset of a large one", at=at)
        if message.offset != offset or message.value is None:
            raise LogDamaged("a message that was there is gone", at=at, found=message.offset)
        return batch_of([message])

    def rest(self) -> None:
        """Fetch nothing ahead until the next `fetch`."""
        if self._next is not None:
            self._next = None
            self._consumer.unassign()

    def _at(self, offset: int) -> KafkaMessage | None:
        """The message at an offset, or the first after it; None if none arrives in time."""
        while (message := self._consumer.poll(PATIENCE)) is not None:
            if isinstance(message, KafkaMessage) and message.offset >= offset:
                return message
        return None
