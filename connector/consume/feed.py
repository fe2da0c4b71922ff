"""Reads messages of assigned partitions of the event topic, and stores a group's positions."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final

from connector.config.model import Config
from connector.consume.assembly import ConsumedMessage
from connector.consume.position import ConsumerPosition
from connector.errors import ConfigError, LogDamaged
from connector.kafka.consumer import KafkaConsumer, KafkaMessage, OffsetMissing, PartitionEnd
from connector.log.format.checked import WRONG

AT_ONCE: Final = 500  # messages
QUEUED_KILOBYTES: Final = 16384  # that librdkafka reads ahead


class Feed:
    """Committed messages of the event topic from given offsets on.

    Args:
        config: the service and its brokers.
        group: the group whose offsets `commit` stores; None: none.
    """

    def __init__(self, config: Config, group: str | None) -> None:
        self._topic = config.topic
        self._group = group
        self._consumer = KafkaConsumer(
            config.kafka,
            group or f"{config.topic}.consumer",
            defaults={"queued.max.messages.kbytes": QUEUED_KILOBYTES, "fetch.wait.max.ms": 100},
        )
        self._paused: set[int] = set()
        self._stored: ConsumerPosition | None = None  # the group's, as far as this consumer knows
        self.offsets: dict[int, int] = {}  # partition → everything before this offset was returned

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()

    def read_from(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions, each from its offset."""
        self.offsets = dict(offsets)
        self._consumer.assign(self._topic, offsets)

    def messages(self, timeout: float) -> list[ConsumedMessage]:
        """The next messages; each partition keeps its order.

        Args:
            timeout: seconds to wait for the first.

        Raises:
            LogDamaged: the next message was deleted, or has no value.
            BrokerUnavailable, PreflightError: the brokers report an error.
        """
        try:
            received = self._consumer.drain(timeout, AT_ONCE)
        except OffsetMissing as error:
            raise LogDamaged(
                "the next message does not exist: retention deleted it, or the topic was re-created",
                hint="raise the topic's retention (kafka.retention_hours), or read the log sooner",
                at=self._at(error.partition, self.offsets.get(error.partition, 0)),
            ) from error
        return [message for each in received if (message := self._accept(each)) is not None]

    def pause(self, partitions: Collection[int]) -> None:
        """Pause these partitions, and resume all others."""
        chosen = set(partitions)
        if pause := chosen - self._paused:
            self._consumer.pause(self._topic, pause)
        if resume := self._paused - chosen:
            self._consumer.resume(self._topic, resume)
        self._paused = chosen

    def commit(self, position: ConsumerPosition) -> None:
        """Store a position in the group's offsets, with its proof in their metadata.

        Raises:
            ConfigError: there is no group.
            BrokerUnavailable, PreflightError: the brokers do not store it.
        """
        if self._group is None:
            raise ConfigError("a consumer without a group cannot commit", hint="pass group=")
        proof: dict[str, object] = {"log_id": position.log_id, "seqno": position.seqno, "epoch": position.epoch}
        if position.shards is not None:
            proof |= {"shards": position.shards, "floor": position.floor, "barrier": position.barrier}
            proof["generation"] = position.generation
        offsets = {}
        for partition, offset in position.offsets.items():
            stored = {**proof, "tail": position.tails[partition]} if partition in position.tails else proof
            offsets[partition] = (offset, json.dumps(stored, separators=(",", ":")))
        self._consumer.commit(self._topic, offsets, seqno=position.seqno)
        self._stored = position

    def store_again(self) -> None:
        """Store the group's position again as it is, if this consumer has stored one or begun with it.

        Brokers delete offsets that were not stored for a week (`offsets.retention.minutes`), and a group without
        offsets begins as a new one.

        Raises:
            ConfigError, BrokerUnavailable, PreflightError: as `committed` and `commit`.
        """
        known = self._stored
        if known is not None:
            self.commit(self.committed(known.service, max(known.offsets, default=0) + 1) or known)

    def committed(self, service: str, partitions: int) -> ConsumerPosition | None:
        """The position that the group stored last; None if it never did.

        Kafka stores each partition by itself. Each partition's metadata holds the position of all partitions at that
        time, and its own offset is not before it; so the newest position holds for all.

        Raises:
            ConfigError: there is no group, or another program stored its offsets.
            BrokerUnavailable, PreflightError: the brokers do not return it.
        """
        if self._group is None:
            raise ConfigError("a consumer without a group has committed nothing", hint="pass group= or start=")
        stored = self._consumer.committed(self._topic, range(partitions))
        if not stored:
            return None
        try:
            proofs = {partition: json.loads(metadata) for partition, (_, metadata) in stored.items()}
            position = ConsumerPosition.of(
                service,
                max(proofs.values(), key=lambda proof: int(proof["seqno"])),
                {partition: offset for partition, (offset, _) in stored.items()},
                {partition: proof["tail"] for partition, proof in proofs.items() if "tail" in proof},
            )
        except WRONG as error:
            raise ConfigError(
                f"the group's offsets were not committed by a consumer of this log: {error}",
                hint="pass another group=",
                group=self._group,
                topic=self._topic,
            ) from error
        self._stored = position
        return position

    def _accept(self, received: KafkaMessage | PartitionEnd) -> ConsumedMessage | None:
        partition, offset = received.partition, received.offset
        if isinstance(received, PartitionEnd):
            self.offsets[partition] = max(offset, self.offsets.get(partition, 0))
            return None
        if received.value is None:
            raise LogDamaged("a message without value", at=self._at(partition, offset))
        self.offsets[partition] = offset + 1
        return ConsumedMessage(partition, offset, received.value)

    def _at(self, partition: int, offset: int) -> str:
        return f"{self._topic}-{partition}@{offset}"
