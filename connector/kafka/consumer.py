"""A consumer beside Spark's, for what Spark cannot be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException

from connector.config.model import Kafka
from connector.errors import ConfigError


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
            ConfigError: a property is refused.
        """
        try:
            self._consumer = self._consumer or Consumer(self._properties, **self._options)
        except (KafkaException, TypeError, ValueError) as error:
            cause = error.args[0].str() if isinstance(error, KafkaException) else error
            raise ConfigError(f"kafka.properties: {cause}") from error
        return self._consumer

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._consumer is not None:
            self._consumer.close()
