"""Writes messages and their progress in one Kafka transaction: each message exactly once.

A record of the progress topic, in the Kafka transaction of the messages, names the last written event. A new sink first
fences an older one of the same name, which ends its open transaction, and then reads that record. So the record covers
all visible messages. Sinks of other services write to the same topic: an open transaction of theirs hides what follows
it, and is waited for.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from connector import failpoints as faults
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, LogDamaged
from connector.kafka.client import admin_client
from connector.kafka.consumer import KafkaConsumer, KafkaMessage, PartitionEnd, Property
from connector.kafka.topics import Topic, create
from connector.kafka.transactions import PARTITION_BY_KEY, Transactions
from connector.log.ids import Epoch, LogId, Seqno

PATIENCE: Final = 60.0
TRANSACTION_MS: Final = 900_000  # the default of the brokers' transaction.max.timeout.ms


@dataclass(frozen=True, slots=True)
class SinkProgress:
    """The last event whose messages are written."""

    log_id: LogId
    seqno: Seqno
    epoch: Epoch


class Sink:
    """A transactional producer of one service's messages, under one name.

    After any error it can only be closed.

    Args:
        config: service and brokers.
        name: name of the progress topic, and part of the transactional id: a new sink fences the older one of its name.
        partitions: number of partitions of a new topic.
        clock: the clock for timeouts.
    """

    def __init__(self, config: Config, name: str, *, partitions: int, clock: Clock) -> None:
        self._config = config
        self._progress = f"{name}.progress"
        self._partitions = partitions
        self._admin = admin_client(config.kafka)
        self._topics: set[str] = set()
        self._transactions = Transactions(
            config,
            clock,
            transactional_id=f"thl.rows.{name}.{config.service}",
            partitioner="murmur2_random",  # the same partition for a key as Java's producers
            transaction_timeout_ms=TRANSACTION_MS,
        )

    def open(self) -> SinkProgress | None:
        """Fence older sinks.

        Returns:
            The progress; None if nothing was written yet.

        Raises:
            BrokerUnavailable, PreflightError: the brokers do not answer, or refuse access.
        """
        self._ensure(self._progress, 1, {"cleanup.policy": "compact"})
        self._transactions.open()
        return self._read()

    def begin(self) -> None:
        """Begin a Kafka transaction; its messages are invisible before `commit`."""
        self._transactions.begin()

    def send(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send a message."""
        self._ensure(topic, self._partitions, {})
        self._transactions.send(topic, PARTITION_BY_KEY, key, value)

    def commit(self, progress: SinkProgress) -> None:
        """Commit the sent messages with their progress.

        Raises:
            Fenced: a newer sink has started.
        """
        record = json.dumps(asdict(progress)).encode()
        self._transactions.send(self._progress, 0, self._config.service.encode(), record)
        faults.point("rows.before_commit")
        self._transactions.commit()
        faults.point("rows.after_commit")

    def close(self) -> None:
        """Abort an open transaction, if the brokers answer; otherwise the next sink's `open` does."""
        self._transactions.close()

    def _ensure(self, topic: str, partitions: int, settings: dict[str, str]) -> None:
        """Create a topic if it is missing."""
        if topic in self._topics:
            return
        replication = self._config.kafka.replication
        create(self._admin, Topic(name=topic, partitions=partitions, replication=replication, settings=settings))
        self._topics.add(topic)

    def _read(self) -> SinkProgress | None:
        """Return the newest record of this service."""
        newest: bytes | None = None
        settings: dict[str, Property] = {"fetch.wait.max.ms": 20, "auto.offset.reset": "earliest"}
        with KafkaConsumer(self._config.kafka, self._progress, committed=False) as uncommitted:
            _, end = uncommitted.bounds(self._progress, 0)
        with KafkaConsumer(self._config.kafka, self._progress, settings=settings) as consumer:
            consumer.assign(self._progress, {0: 0})
            while not (isinstance(message := consumer.poll(PATIENCE), PartitionEnd) and message.offset >= end):
                if message is None:
                    raise BrokerUnavailable(
                        "the progress cannot be read to its end",
                        hint="a run of another service under this prefix may be within a commit: start it again, or "
                        "wait until the brokers end its transaction (15 minutes)",
                        topic=self._progress,
                    )
                if isinstance(message, KafkaMessage) and message.key == self._config.service.encode():
                    newest = message.value
        if newest is None:
            return None
        try:
            return SinkProgress(**json.loads(newest))
        except (ValueError, TypeError) as error:
            raise LogDamaged("the progress record is damaged", topic=self._progress, value=newest[:200]) from error
