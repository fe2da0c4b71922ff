"""A peer's topic, created like the connector's, and its growth."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


class Topic:
    """A topic with one partition and one replica.

    Args:
        bootstrap: the broker.
        name: name of the topic.
    """

    def __init__(self, bootstrap: str, name: str) -> None:
        self.name = name
        self._bootstrap = bootstrap
        self._asker = Consumer({"bootstrap.servers": bootstrap, "group.id": f"size.{name}", "log_level": 0})

    def create(self) -> None:
        """Create the topic.

        Raises:
            KafkaException: there is one already, or the broker refuses.
        """
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        for made in admin.create_topics([NewTopic(self.name, 1, 1)]).values():
            made.result()

    def messages(self) -> int:
        """The offset after its last message; 0 if there is no such topic."""
        try:
            _, end = self._asker.get_watermark_offsets(TopicPartition(self.name, 0), timeout=10)
        except KafkaException:
            return 0
        return int(end)

    def close(self) -> None:
        """Close the client."""
        self._asker.close()
