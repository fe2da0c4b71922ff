"""Messages too large to go through Spark's heap: fetched one by one, when their turn comes.

A fragment of a large row is as large as a message may be. Spark holds a message about ten times while it collects a
batch; a batch of large ones would not fit. So Spark hands over where such a message stands, and its bytes are read
from Kafka here.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

import pyarrow as pa
from confluent_kafka import KafkaException, TopicPartition

from connector.config import Kafka
from connector.errors import BrokerUnavailable, LogDamaged
from connector.reassemble.consumer import OnDemand

LARGE: Final = 256 << 10  # bytes of a message that Spark still carries
PATIENCE: Final = 30.0  # seconds for an answer
LARGEST: Final = 1 << 30  # what Kafka's protocol can send in one answer, about


class LargeMessages:
    """Fetches single messages of one topic; connects when the first is asked for.

    Args:
        kafka: brokers and their properties.
        topic: the event topic.
    """

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._topic = topic
        wanted = {
            "auto.offset.reset": "error",
            "check.crcs": True,
            # One message is wanted: nothing more is to be fetched ahead than cannot be helped.
            "queued.max.messages.kbytes": 1024,
            "fetch.message.max.bytes": 1 << 20,
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
            consumer.assign([TopicPartition(self._topic, partition, offset)])
            message = consumer.poll(PATIENCE)
            consumer.unassign()
        except KafkaException as error:
            raise BrokerUnavailable(f"a large message cannot be read: {error.args[0].str()}", at=place) from error
        if message is None:
            raise BrokerUnavailable("a large message is not sent in time", at=place)
        if (refused := message.error()) is not None:
            raise BrokerUnavailable(f"a large message cannot be read: {refused.str()}", at=place)
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
