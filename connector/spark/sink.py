"""Messages and how far they go, in one Kafka transaction: each is there once, whatever is killed when.

What was written is told by a record of the progress topic, written in the same Kafka transaction as the messages. Who
begins fences whoever wrote before under the same name, which ends the other's open transaction, and reads that record
then: so there is nothing between it and what is visible.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as KafkaMessage
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from connector import faults
from connector.clock import Clock
from connector.config import Config
from connector.errors import BrokerUnavailable, LogDamaged
from connector.publish.client import LOG, failure, properties
from connector.thl.words import Epoch, LogId, Seqno

PATIENCE: Final = 60.0
STEP: Final = 10.0
TRANSACTION_MS: Final = 900_000  # what brokers allow, if nobody said otherwise


@dataclass(frozen=True, slots=True)
class Progress:
    """The last event whose messages are there."""

    log_id: LogId
    seqno: Seqno
    epoch: Epoch


class Sink:
    """A transactional producer of one service's messages, under one name.

    After any error it is only to be closed.

    Args:
        config: service and brokers.
        name: of the progress topic, and part of the transactional id: who writes under it fences whoever did before.
        partitions: of a topic, when it is made.
        clock: for the patience.
    """

    def __init__(self, config: Config, name: str, *, partitions: int, clock: Clock) -> None:
        self._config = config
        self._progress = f"{name}.progress"
        self._partitions = partitions
        self._clock = clock
        self._lost: KafkaError | None = None
        self._admin = AdminClient(properties(config.kafka), logger=LOG)
        self._topics: set[str] = set()
        self._producer = Producer(
            {
                "linger.ms": 5,
                "compression.type": config.publish.compression,
                **properties(
                    config.kafka,
                    transactional_id=f"thl.rows.{name}.{config.service}",
                    enable_idempotence=True,
                    acks="all",
                    partitioner="murmur2_random",  # a key's partition is the one that Java's producers choose
                    message_max_bytes=min(config.kafka.max_message_bytes, 1_000_000_000),
                    transaction_timeout_ms=TRANSACTION_MS,
                    delivery_report_only_error=True,
                ),
                "on_delivery": self._delivered,
            },
            logger=LOG,
        )

    def open(self) -> Progress | None:
        """Fence older writers; what was written until now, None when nothing was.

        Raises:
            BrokerUnavailable, PreflightError: the brokers do not answer, or refuse us.
        """
        self._ensure(self._progress, 1, {"cleanup.policy": "compact"})
        self._step("the transactional producer cannot start", self._producer.init_transactions)
        return self._read()

    def begin(self) -> None:
        """Begin a Kafka transaction: nothing of it is visible before `commit`."""
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise failure(error, "a Kafka transaction cannot begin", topic=self._progress) from error

    def send(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Send a message."""
        self._ensure(topic, self._partitions, {})
        self._send(topic, key, value)

    def commit(self, progress: Progress) -> None:
        """Make what was sent visible, together with how far it goes.

        Raises:
            Fenced: a newer writer has begun.
        """
        self._send(self._progress, self._config.service.encode(), json.dumps(asdict(progress)).encode())
        faults.point("rows.before_commit")
        self._step("a Kafka transaction cannot be committed", self._producer.commit_transaction)
        faults.point("rows.after_commit")

    def close(self) -> None:
        """Abort what is not committed, as far as Kafka lets us: the next `open` of anyone does it otherwise."""
        try:
            self._producer.purge()
            self._producer.abort_transaction(STEP)
        except KafkaException as error:
            LOG.debug("no transaction to abort: %s", error)

    def _send(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        give_up = self._clock.monotonic() + PATIENCE
        while True:
            try:
                if key is None:
                    self._producer.produce(topic, value)
                else:
                    self._producer.produce(topic, value, key)
            except BufferError:
                if self._clock.monotonic() > give_up:
                    raise BrokerUnavailable("Kafka takes no messages", topic=topic) from None
                self._producer.poll(0.05)
            except KafkaException as error:
                raise failure(error, "a message cannot be sent", topic=topic) from error
            else:
                self._producer.poll(0)
                return

    def _ensure(self, topic: str, partitions: int, settings: dict[str, str]) -> None:
        """A topic, made where it is missing."""
        if topic in self._topics:
            return
        wanted = NewTopic(topic, partitions, self._config.kafka.replication, config=settings)
        try:
            self._admin.create_topics([wanted], operation_timeout=PATIENCE)[topic].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise failure(error, "a topic cannot be made", topic=topic) from error
        self._topics.add(topic)

    def _step(self, doing: str, step: object) -> None:
        give_up = self._clock.monotonic() + PATIENCE
        while True:
            try:
                step(STEP)  # type: ignore[operator]
            except KafkaException as error:
                cause = error.args[0]
                if cause.retriable() and self._clock.monotonic() < give_up:
                    continue
                if self._lost is not None and not cause.fatal():
                    cause = self._lost
                raise failure(cause, doing, topic=self._progress) from error
            else:
                return

    def _read(self) -> Progress | None:
        """The newest record of this service."""
        newest: bytes | None = None
        chosen = properties(
            self._config.kafka,
            group_id=self._progress,
            isolation_level="read_committed",
            enable_auto_commit=False,
            enable_partition_eof=True,
            fetch_wait_max_ms=20,
        )
        with closing(Consumer(chosen, logger=LOG)) as consumer:
            consumer.assign([TopicPartition(self._progress, 0, 0)])
            while True:
                message = consumer.poll(PATIENCE)
                if message is None:
                    raise BrokerUnavailable("the progress cannot be read to its end", topic=self._progress)
                refused = message.error()
                if refused is not None:
                    if refused.code() == KafkaError._PARTITION_EOF:
                        break
                    raise failure(refused, "the progress cannot be read", topic=self._progress)
                if message.key() == self._config.service.encode():
                    newest = message.value()
        if newest is None:
            return None
        try:
            return Progress(**json.loads(newest))
        except (ValueError, TypeError) as error:
            raise LogDamaged("the progress record is not ours", topic=self._progress, value=newest[:200]) from error

    def _delivered(self, error: KafkaError | None, message: KafkaMessage) -> None:
        if error is not None and self._lost is None and error.code() != KafkaError._PURGE_QUEUE:
            self._lost = error
            LOG.warning("not delivered", extra={"topic": message.topic(), "why": error.str()})
