"""Writes a log's topics as a producer would, without one."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.inspect.thl_events.decoding import fragment_of
from connector.kafka.records import ControlRecord, control_message, position_message
from connector.log.format.first_fields import first_fields
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.position import Digest, Finished, PositionRecord, SourcePosition
from tests.support.fragments import encoded, record, statement
from tests.support.servers.environment import Broker


def a_fragment(
    seqno: int,
    fragno: int = 0,
    *,
    last: bool = True,
    epoch: int = 1,
    kind: str = "transaction",
    changes: Sequence[dict[str, Any]] | None = None,
) -> bytes:
    return encoded(
        record(
            seqno,
            [statement(f"statement {seqno}.{fragno} of {epoch}", "s")] if changes is None else changes,
            fragno=fragno,
            last_frag=last,
            epoch=epoch,
            kind=kind,
            source_id="h:1",
            metadata={"service": "x"},
            gtid=f"u:{seqno}",
            event_id=f"b.1:{seqno:016};0" if last else None,
            commit_time=seqno if last else None,
        )
    )


LOG_ID = "c" * 32


@dataclass
class Log:
    """A log's event topic, written without a producer."""

    broker: Broker
    partitions: int = 2
    service: str = field(default_factory=lambda: f"list-{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        self.topic = self.config.topic
        self.place = SourcePosition("b.1", 4)  # of the producer
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        others = (self.config.control_topic, self.config.position_topic)
        topics = [NewTopic(self.topic, self.partitions, 1), *(NewTopic(other, 1, 1) for other in others)]
        self.tails = dict.fromkeys(range(self.partitions), Seqno(-1))
        for made in admin.create_topics(topics).values():
            made.result(30)
        self.producer = Producer({"bootstrap.servers": self.broker.bootstrap, "transactional.id": self.service})
        self.producer.init_transactions(30)

    def transaction(self, *messages: tuple[int, bytes], abort: bool = False, flip: int = 0) -> None:
        """Writes messages; the last byte of each, which is of its checksum, with the bits of `flip` changed."""
        self.producer.begin_transaction()
        for partition, value in messages:
            linked = self._linked(partition, value)
            linked = linked[:-1] + bytes([linked[-1] ^ flip])
            self.producer.produce(self.topic, linked, partition=partition)
            if not abort and (place := first_fields(value, f"{self.topic}-{partition}")).finishes:
                self.tails[partition] = place.seqno
        key, value = position_message(self.position)
        self.producer.produce(self.config.position_topic, value, key)
        self.producer.flush(30)  # a broker refuses the end of a transaction of which it has no message yet
        self.producer.abort_transaction(30) if abort else self.producer.commit_transaction(30)

    def _linked(self, partition: int, value: bytes) -> bytes:
        """The message with the finished event before its own in this partition; a marker names the log."""
        fields = fragment_of(value, f"{self.topic}-{partition}")
        fields["prev_seqno"] = self.tails[partition]
        if fields["kind"] == "epoch":
            fields["metadata"] |= {"log_id": LOG_ID, "last_finished": str(max(self.tails.values()))}
        return encoded(fields)

    @property
    def position(self) -> PositionRecord:
        """Writes a producer's position, with the fields that readers use."""
        place = self.place
        last = max(self.tails.values())
        finished = Finished(
            seqno=Seqno(last),
            epoch=Epoch(1),
            event_id=f"b.1:{last:016};0",
            gtid=None,
            digest=Digest(0, 0, 0),
            start=place,
        )
        return PositionRecord(finished=finished if last >= 0 else None, resume=place, gtid_set=None, open=None,
                              tails=dict(self.tails))  # fmt: skip

    def control(self, *records: ControlRecord) -> None:
        """Writes records of the control topic."""
        self.producer.begin_transaction()
        for one in records:
            key, value = control_message(one)
            self.producer.produce(self.config.control_topic, value, key)
        self.producer.commit_transaction(30)

    @property
    def config(self) -> Config:
        return Config(service=self.service, kafka=Kafka(bootstrap=self.broker.bootstrap))

    @property
    def arguments(self) -> list[str]:
        return ["--set", f"service={self.service}", "--set", f"kafka.bootstrap={self.broker.bootstrap}"]
