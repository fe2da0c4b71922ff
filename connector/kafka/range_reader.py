"""Reads ranges of offsets of the event topic: in Spark's tasks, and in the driver what tasks do not read.

Values of large messages are left out, and fetched when they are applied (`connector.kafka.large_messages`): tasks read
in several processes at once, and each would hold them several times.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from connector.clock import Clock
from connector.config.kafka import Kafka
from connector.kafka.consumer import KafkaConsumer, KafkaMessage
from connector.kafka.large_messages import LARGE, LARGEST, ONE_BATCH
from connector.kafka.message_batch import message_batch

PATIENCE: Final = 30.0  # seconds without a message
WAIT: Final = 1.0  # seconds of one wait for messages


class RangeReader:
    """Reads one range after the other; connects at the first.

    Args:
        kafka: brokers and their properties.
        topic: the event topic.
        clock: the clock for `PATIENCE`.
        abandoned: returns true once the messages are not needed any more; asked every second.
    """

    def __init__(self, kafka: Kafka, topic: str, clock: Clock, abandoned: Callable[[], bool] = lambda: False) -> None:
        self._topic = topic
        self._clock = clock
        self._abandoned = abandoned
        # What is fetched beyond a range is dropped.
        self._consumer = self._made(kafka, {"queued.max.messages.kbytes": 8 << 10, "fetch.message.max.bytes": 1 << 20})
        self._large = self._made(kafka, {"queued.max.messages.kbytes": 1 << 10, "fetch.message.max.bytes": ONE_BATCH})

    def _made(self, kafka: Kafka, settings: Mapping[str, int]) -> KafkaConsumer:
        return KafkaConsumer(
            kafka,
            f"{self._topic}.range",
            settings={
                "fetch.wait.max.ms": 10,
                # By default librdkafka looks once a second whether the queue has room again.
                "fetch.queue.backoff.ms": 1,
                "fetch.max.bytes": LARGEST - 1024,
                "receive.message.max.bytes": LARGEST,
                **settings,
            },
        )

    def close(self) -> None:
        """End the connections."""
        self._consumer.close()
        self._large.close()

    def batches(
        self,
        partition: int,
        begin: int,
        end: int,
        *,
        large: bool = False,
        short: Callable[[bytes], bytes | None] | None = None,
    ) -> Generator[pa.RecordBatch]:
        """Yield the committed messages of a range, in the form of `batch_of`. Read one range at a time.

        The value of a large message is null, or what `short` makes of it.

        Args:
            partition: the partition.
            begin, end: offsets, `end` not included; the partition has messages or its end there.
            large: messages may be large: fetch one of the producer's batches at a time, because they can decompress
                to a thousand times their bytes on the wire, which bound a fetch otherwise.
            short: returns what is enough of a large message; None: its value is left out.

        Raises:
            BrokerUnavailable: the brokers do not answer, or no longer have the messages.
        """
        consumer = self._large if large else self._consumer
        consumer.assign(self._topic, {partition: begin})
        try:
            arrived = self._clock.monotonic()
            ended = False
            while not ended:
                received = consumer.drain(WAIT)
                if received:
                    arrived = self._clock.monotonic()
                elif self._abandoned() or self._clock.monotonic() - arrived > PATIENCE:
                    at = f"{self._topic}-{partition}"
                    raise consumer.silent("the end of an offset range", at=at, begin=begin, end=end)
                ended = any(one.offset >= end for one in received)
                messages = [one for one in received if isinstance(one, KafkaMessage) and one.offset < end]
                del received
                if messages:
                    batch = _without_large(messages, short)
                    del messages  # the batch has copies, and is worked on for long
                    yield batch
        finally:
            consumer.unassign()


def _without_large(messages: Sequence[KafkaMessage], short: Callable[[bytes], bytes | None] | None) -> pa.RecordBatch:
    """Messages as a batch, without the values of large ones."""
    values = [message.value for message in messages]
    return message_batch(
        [message.partition for message in messages],
        [message.offset for message in messages],
        [value if value is None or len(value) <= LARGE else short and short(value) for value in values],
    )
