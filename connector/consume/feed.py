"""The messages of some partitions of the event topic, as they come."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Received

from connector.config.model import Config
from connector.consume.assembly import Message
from connector.consume.position import ConsumerPosition
from connector.errors import ConfigError, LogDamaged
from connector.kafka.client import LOG, Refusals, checked_properties, failure, properties
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno, ShardId

AT_ONCE: Final = 500  # messages
QUEUED_KILOBYTES: Final = 16384  # that librdkafka reads ahead
PATIENCE: Final = 30.0  # seconds for an answer


class Feed:
    """A consumer of Kafka's, of committed messages, with the partitions that it is told to read.

    Args:
        config: the service and its brokers.
        group: whose offsets are committed; None: none are.
    """

    def __init__(self, config: Config, group: str | None) -> None:
        self._topic = config.topic
        self._group = group
        self._refusals = Refusals()
        chosen = properties(
            config.kafka,
            group_id=group or f"{config.topic}.consumer",
            isolation_level="read_committed",
            enable_auto_commit=False,
            enable_partition_eof=True,
            auto_offset_reset="error",
            check_crcs=True,
        )
        ours = {"queued.max.messages.kbytes": QUEUED_KILOBYTES, "fetch.wait.max.ms": 100}
        with checked_properties():
            self._consumer = Consumer({**ours, **chosen, "error_cb": self._refusals}, logger=LOG)
        self._held: set[int] = set()
        self.places: dict[int, int] = {}  # partition → everything before this offset was given

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()

    def read_from(self, offsets: Mapping[int, int]) -> None:
        """Begin with these partitions there."""
        self.places = dict(offsets)
        self._consumer.assign([TopicPartition(self._topic, p, offset) for p, offset in offsets.items()])

    def messages(self, timeout: float) -> list[Message]:
        """The next messages, each partition's in its order.

        Args:
            timeout: seconds after which to come back without any.

        Raises:
            LogDamaged: what is next was deleted, or a message is none of ours.
            BrokerUnavailable, PreflightError: Kafka says that it cannot.
        """
        received = self._consumer.consume(AT_ONCE, 0)
        if not received:
            one = self._consumer.poll(timeout)
            received = [] if one is None else [one, *self._consumer.consume(AT_ONCE, 0)]
        return [message for each in received if (message := self._message(each)) is not None]

    def hold(self, partitions: Collection[int]) -> None:
        """Read no further in these for now, and on in all others."""
        wanted = set(partitions)
        if pause := wanted - self._held:
            self._consumer.pause([TopicPartition(self._topic, p) for p in pause])
        if resume := self._held - wanted:
            self._consumer.resume([TopicPartition(self._topic, p) for p in resume])
        self._held = wanted

    def commit(self, position: ConsumerPosition) -> None:
        """Store a position in the group's offsets, and beside each what proves it.

        Raises:
            ConfigError: there is no group.
            BrokerUnavailable, PreflightError: Kafka does not take it.
        """
        if self._group is None:
            raise ConfigError("a consumer without a group has nowhere to commit", hint="give it a group")
        proof: dict[str, object] = {"log_id": position.log_id, "seqno": position.seqno, "epoch": position.epoch}
        if position.shards is not None:
            proof |= {"shards": position.shards, "floor": position.floor, "barrier": position.barrier}
            proof["generation"] = position.generation
        offsets = []
        for partition, offset in position.offsets.items():
            told = {**proof, "tail": position.tails[partition]} if partition in position.tails else proof
            offsets.append(TopicPartition(self._topic, partition, offset, json.dumps(told, separators=(",", ":"))))
        try:
            for done in self._consumer.commit(offsets=offsets, asynchronous=False) or ():
                if done.error is not None:
                    raise failure(done.error, "a position is not stored", group=self._group, seqno=position.seqno)
        except KafkaException as error:
            raise failure(error, "a position is not stored", group=self._group, seqno=position.seqno) from error

    def committed(self, service: str, partitions: int) -> ConsumerPosition | None:
        """The position that the group stored last; None if it never did.

        Kafka stores partition by partition. Each says how far all were then, and its own offset is not behind that; so
        the newest of them holds for all.

        Raises:
            ConfigError: there is no group, or what it stored is not a consumer's of this package.
            BrokerUnavailable, PreflightError: Kafka does not tell.
        """
        if self._group is None:
            raise ConfigError("a consumer without a group has committed nothing", hint="give it a group, or a start")
        asked = [TopicPartition(self._topic, partition) for partition in range(partitions)]
        try:
            stored = [one for one in self._consumer.committed(asked, timeout=PATIENCE) if one.offset >= 0]
        except KafkaException as error:
            raise failure(error, "the group's position cannot be read", group=self._group) from error
        if not stored:
            return None
        try:
            proofs = {one.partition: json.loads(one.metadata or "") for one in stored}
            newest = max(proofs.values(), key=lambda proof: int(proof["seqno"]))
            shards, barrier = newest.get("shards"), newest.get("barrier")
            return ConsumerPosition(
                service=service,
                log_id=LogId(newest["log_id"]),
                seqno=Seqno(newest["seqno"]),
                epoch=Epoch(newest["epoch"]),
                offsets={one.partition: one.offset for one in stored},
                shards=None if shards is None else tuple(ShardId(shard) for shard in shards),
                tails={p: Seqno(proof["tail"]) for p, proof in proofs.items() if "tail" in proof},
                floor=Seqno(newest.get("floor", NO_SEQNO)),
                barrier=None if barrier is None else Seqno(barrier),
                generation=int(newest.get("generation", 1)),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"what the group has committed is not of a consumer of this log: {error}",
                hint="use another group",
                group=self._group,
                topic=self._topic,
            ) from error

    def _message(self, received: Received) -> Message | None:
        partition, offset = received.partition() or 0, received.offset() or 0
        at = f"{self._topic}-{partition}@{offset}"
        error = received.error()
        if error is None:
            value = received.value()
            if value is None:
                raise LogDamaged("a message without value", at=at)
            self.places[partition] = offset + 1
            return Message(partition, offset, value)
        if error.code() == KafkaError._PARTITION_EOF:
            self.places[partition] = max(offset, self.places.get(partition, 0))
            return None
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise LogDamaged(
                "What comes next is not there: the topic's retention has deleted it, or the topic was made anew",
                hint="keep the log for longer, and read it sooner",
                at=f"{self._topic}-{partition}@{self.places.get(partition, offset)}",
            )
        raise failure(error, "the log cannot be read", at=at)
