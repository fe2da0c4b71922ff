"""How far the log's end is: asked of the brokers themselves, which shows at the same time that they are there."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaException, TopicPartition

from connector.config.model import Kafka
from connector.errors import BrokerUnavailable
from connector.kafka.consumer import OnDemand

LOG: Final = logging.getLogger(__name__)

PATIENCE: Final = 5.0  # seconds for an answer


class LogEnd:
    """Asks for the ends of one topic's partitions; connects when first asked.

    Args:
        kafka: brokers and their properties.
        topic: the event topic.
    """

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._topic = topic
        self._consumer = OnDemand(kafka, f"{topic}.end", logger=LOG)

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()

    def behind(self, offsets: Mapping[int, int]) -> int:
        """How many offsets there are from the given ones to the ends, over all partitions.

        Markers of Kafka's transactions, and what was given up, are among them: it is a bound, not a count.

        Raises:
            BrokerUnavailable: the brokers do not answer.
        """
        behind = 0
        for partition, offset in offsets.items():
            try:
                place = TopicPartition(self._topic, partition)
                low, high = self._consumer.get().get_watermark_offsets(place, PATIENCE)
            except KafkaException as error:
                raise BrokerUnavailable(
                    f"the log's end cannot be asked for: {error.args[0].str()}",
                    hint="are the brokers of kafka.bootstrap up?",
                    at=f"{self._topic}-{partition}",
                ) from error
            behind += high - max(low, offset)
        return behind
