"""A consumer beside Spark's, for what Spark cannot be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer

from connector.config import Kafka


class OnDemand:
    """Of committed messages, in no group, commits no offsets; connects when first asked for.

    Args:
        kafka: brokers and their properties.
        name: what brokers know it by.
        properties: more of librdkafka's, over the user's.
        options: of confluent-kafka.
    """

    def __init__(self, kafka: Kafka, name: str, properties: Mapping[str, Any] | None = None, **options: Any) -> None:
        self._consumer: Consumer | None = None
        self._options = options
        self._properties = {
            "bootstrap.servers": kafka.bootstrap,
            **kafka.properties,
            "group.id": name,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            **(properties or {}),
        }

    def get(self) -> Consumer:
        """The consumer.

        Raises:
            KafkaException: a property is refused.
        """
        self._consumer = self._consumer or Consumer(self._properties, **self._options)
        return self._consumer

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._consumer is not None:
            self._consumer.close()
