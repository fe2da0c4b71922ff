"""Reads ranges of offsets of the event topic: in Spark's tasks, and in the driver what tasks do not read."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

import pyarrow as pa

from connector.clock import Clock
from connector.config.kafka import Kafka
from connector.kafka.consumer import KafkaConsumer, KafkaMessage
from connector.kafka.large_messages import LARGEST
from connector.kafka.message_batch import batch_of

PATIENCE: Final = 30.0  # seconds without a message
WAIT: Final = 1.0  # seconds of one wait for messages


class RangeReader:
    """Reads one range after the other; connects at the first.

    Args:
        kafka: brokers and their properties.
        topic: the event topic.
        clock: the clock for `PATIENCE`.
        abandoned: returns true once nobody waits for the messages any more; asked every second.
    """

    def __init__(self, kafka: Kafka, topic: str, clock: Clock, abandoned: Callable[[], bool] = lambda: False) -> None:
        self._topic = topic
        self._clock = clock
        self._abandoned = abandoned
        self._consumer = KafkaConsumer(
            kafka,
            f"{topic}.range",
            settings={
                "fetch.wait.max.ms": 10,
                # What is fetched beyond a range is dropped.
                "queued.max.messages.kbytes": 8 << 10,
                "fetch.message.max.bytes": 1 << 20,
                # By default librdkafka looks once a second whether the queue has room again.
                "fetch.queue.backoff.ms": 1,
                "fetch.max.bytes": LARGEST - 1024,
                "receive.message.max.bytes": LARGEST,
            },
        )

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()

    def batches(self, partition: int, begin: int, end: int) -> Generator[pa.RecordBatch]:
        """Yield the committed messages of a range, in the form of `batch_of`. Read one range at a time.

        Args:
            partition: the partition.
            begin, end: offsets, `end` not included; the partition has messages or its end there.

        Raises:
            BrokerUnavailable: the brokers do not answer, or no longer have the messages.
        """
        self._consumer.assign(self._topic, {partition: begin})
        try:
            arrived = self._clock.monotonic()
            ended = False
            while not ended:
                received = self._consumer.drain(WAIT)
                if received:
                    arrived = self._clock.monotonic()
                elif self._abandoned() or self._clock.monotonic() - arrived > PATIENCE:
                    at = f"{self._topic}-{partition}"
                    raise self._consumer.silent("the end of an offset range", at=at, begin=begin, end=end)
                ended = any(one.offset >= end for one in received)
                messages = [one for one in received if isinstance(one, KafkaMessage) and one.offset < end]
                if messages:
                    yield batch_of(messages)
        finally:
            self._consumer.unassign()
