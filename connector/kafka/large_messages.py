"""Messages too large to go through Spark's heap: fetched one by one, when their turn comes.

A fragment of a large row is as large as a message may be. Spark holds a message about ten times while it collects a
batch; a batch of large ones would not fit. So Spark hands over where such messages stand, and their bytes are read
from Kafka here. Large ones come in rows, so from one to the next the consumer reads on; to begin anew costs a fetch.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from connector.config.model import Kafka
from connector.errors import BrokerUnavailable, LogDamaged
from connector.kafka.consumer import OnDemand

LARGE: Final = 256 << 10  # bytes of a message that Spark still carries
PATIENCE: Final = 30.0  # seconds for an answer
LARGEST: Final = 1 << 30  # what Kafka's protocol can send in one answer, about
NEAR: Final = 32  # messages that are rather read and left out than begun anew behind


class LargeMessages:
    """Fetches single messages of one topic; connects when the first is asked for.

    Args:
        kafka: brokers and their properties.
        topic: the event topic.
    """

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._topic = topic
        self._at: tuple[int, int] | None = None  # the partition that is read, and the offset that comes next
        wanted = {
            "auto.offset.reset": "error",
            "check.crcs": True,
            # Little is fetched ahead: memory, and what is not wanted is thrown away.
            "queued.max.messages.kbytes": 1024,
            "fetch.message.max.bytes": 1 << 20,
            # By default it looks once a second whether the queue has room again.
            "fetch.queue.backoff.ms": 1,
            # To begin anew waits for the last fetch's answer, and at the log's end that has nothing to bring.
            "fetch.wait.max.ms": 10,
            "fetch.max.bytes": LARGEST - 1024,
            "receive.message.max.bytes": LARGEST,
        }
        self._consumer = OnDemand(kafka, f"{topic}.large", wanted)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def fetch(self, partition: int, offset: int) -> pa.RecordBatch:
        """One message, in the form of a batch that Spark hands over.

        Raises:
            BrokerUnavailable: the brokers do not answer.
            LogDamaged: there is no such message any more.
        """
        place = f"{self._topic}-{partition}@{offset}"
        consumer = self._consumer.get()
        try:
            if self._at is None or self._at[0] != partition or not 0 <= offset - self._at[1] <= NEAR:
                consumer.assign([TopicPartition(self._topic, partition, offset)])
            self._at = (partition, offset + 1)
            message = _at(consumer, offset)
        except KafkaException as error:
            why: KafkaError = error.args[0]
            if why.code() == KafkaError._AUTO_OFFSET_RESET:
                raise LogDamaged("a message that was there is gone", at=place, cause=why.str()) from error
            raise BrokerUnavailable(f"a large message cannot be read: {why.str()}", at=place) from error
        if message is None:
            raise BrokerUnavailable("a large message is not sent in time", at=place)
        value = message.value()
        if message.offset() != offset or value is None:
            raise LogDamaged("a message that was there is gone", at=place, found=message.offset())
        return pa.record_batch(
            {
                "partition": pa.array([partition], pa.int32()),
                "offset": pa.array([offset], pa.int64()),
                "value": pa.array([value], pa.large_binary()),
            }
        )

    def rest(self) -> None:
        """No more are wanted for a while: nothing is fetched ahead."""
        if self._at is not None:
            self._at = None
            self._consumer.get().unassign()


def _at(consumer: Consumer, offset: int) -> Message | None:
    """The message at an offset, or the first behind it; what stands before it is left out. None if nothing comes.

    Raises:
        KafkaException: it cannot be read.
    """
    while (message := consumer.poll(PATIENCE)) is not None:
        if (refused := message.error()) is not None:
            raise KafkaException(refused)
        if (message.offset() or 0) >= offset:
            break
    return message
