"""Writes a log on a real Kafka without the producer: fragments by fastavro, control and position records.

Every second epoch frames its messages as with a schema registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connector.config.model import Config
from connector.kafka.records import control_message, position_message
from connector.log.epochs.control import EpochRecord, LogRecord, PartitionMap
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.position import Digest, Finished, PositionRecord, SourcePosition
from tests.support.fragments import by_epoch, marker

MESSAGE_BYTES = 128 << 20


class LogWriter:
    """Writes one service's log; every call is a Kafka transaction of its own.

    Args:
        config: the service and its brokers.
        log_id: 32 hex digits.
        partitions: number of partitions of the event topic.
    """

    def __init__(self, config: Config, *, log_id: str = "f" * 32, partitions: int = 1) -> None:
        self.config = config
        self.log_id = log_id
        self.partitions = partitions
        self.epoch = 0
        self._tails = dict.fromkeys(range(partitions), -1)
        self._last: dict[str, Any] | None = None
        self.gtid_set = ""  # what an epoch finds to be there
        admin = AdminClient({"bootstrap.servers": config.kafka.bootstrap})
        sizes = {"max.message.bytes": str(MESSAGE_BYTES)}
        for made in admin.create_topics(
            [
                NewTopic(config.topic, partitions, 1, config=sizes),
                NewTopic(config.control_topic, 1, 1),
                NewTopic(config.position_topic, 1, 1),
            ]
        ).values():
            made.result(30)
        self._producer = Producer(
            {
                "bootstrap.servers": config.kafka.bootstrap,
                "transactional.id": config.topic,
                "message.max.bytes": MESSAGE_BYTES,
                "compression.type": "lz4",
                "max.in.flight.requests.per.connection": 1,  # see Transactions.commit
            }
        )
        self._producer.init_transactions(60)

    @property
    def seqno(self) -> int:
        """The seqno of the last finished event."""
        return self._last["seqno"] if self._last else -1

    def online(self) -> None:
        """Begins a new epoch, with a marker on every partition."""
        self.epoch += 1
        control: list[LogRecord | PartitionMap | EpochRecord] = []
        if self.epoch == 1:
            control += [LogRecord(LogId(self.log_id), 0), PartitionMap(1, self.partitions)]
        control.append(
            EpochRecord(
                epoch=Epoch(self.epoch),
                first_seqno=Seqno(self.seqno + 1),
                source_id="db:3306",
                server_uuid="u",
                started=0,
                reason="online",
                gtid_set=self.gtid_set,
            )
        )
        self._producer.begin_transaction()
        for record in control:
            key, value = control_message(record)
            self._producer.produce(self.config.control_topic, value, key, partition=0)
        for partition, tail in self._tails.items():
            one = marker(self.epoch, self.seqno + 1, self.seqno, log_id=self.log_id, tail=tail)
            self._produce(by_epoch(one), partition)
        self._commit()

    def events(
        self, records: Sequence[dict[str, Any]], partition: int = 0, *, abort: bool = False, lost: bool = False
    ) -> None:
        """Writes fragments made by `fragments.record`, or an aborted transaction with them.

        What is `lost` was acknowledged and is not in its partition any more: as after an unclean election.
        """
        self._producer.begin_transaction()
        for record in records:
            if not lost:
                self._produce(by_epoch({**record, "epoch": self.epoch}), partition)
            if record["last_frag"] and not abort:
                if record["seqno"] > self.seqno:  # of another partition it may be an earlier one
                    self._last = record
                self._tails[partition] = record["seqno"]
        self._end(abort=abort)

    def raw(self, *values: bytes, partition: int = 0, abort: bool = False) -> None:
        """Writes any messages."""
        self._producer.begin_transaction()
        for value in values:
            self._produce(value, partition)
        self._end(abort=abort)

    def _end(self, *, abort: bool) -> None:
        if abort:
            self._producer.flush()
            self._producer.abort_transaction()
        else:
            self._commit()

    def _produce(self, value: bytes, partition: int) -> None:
        while True:
            try:
                self._producer.produce(self.config.topic, value, partition=partition)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _commit(self) -> None:
        last = self._last
        finished = last and Finished(
            seqno=Seqno(last["seqno"]),
            epoch=Epoch(self.epoch),
            event_id=last["event_id"],
            gtid=last["gtid"],
            digest=Digest(last["rows"], 0, 0),
            start=SourcePosition("binlog.000001", 4),
        )
        record = PositionRecord(
            finished=finished,
            resume=SourcePosition("binlog.000001", 4),
            gtid_set=None,
            open=None,
            tails={partition: Seqno(tail) for partition, tail in self._tails.items()},
        )
        key, value = position_message(record)
        self._producer.produce(self.config.position_topic, value, key, partition=0)
        self._producer.commit_transaction(60)
