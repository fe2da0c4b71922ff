"""Counts the content of a log by a consumer without shared code: proof that nothing is lost or doubled."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from zlib import crc32

from confluent_kafka import Consumer, KafkaError, TopicPartition

from connector.config.model import Config

_MANY = 5000
_OPENING = 10  # Avro's single-object marker and the schema's fingerprint
_CRC = 4
_EPOCH = 3  # the index of `epoch` among the kinds of schemas/fragment.avsc


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of a log's finished events.

    Args:
        events: that carry rows.
        rows: theirs.
        dense: whether the seqnos of all events are 0, 1, 2 … each once.
    """

    events: int
    rows: int
    dense: bool


def count(config: Config) -> Counted:
    """Read the committed messages of all partitions from beginning to end, and check every CRC.

    Raises:
        ValueError: a message's CRC is wrong.
        RuntimeError: Kafka's error.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": config.kafka.bootstrap,
            "group.id": "bench.count",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    events = rows = finished = 0
    seqnos: set[int] = set()
    try:
        waiting = set(range(config.kafka.partitions))
        consumer.assign([TopicPartition(config.topic, number, 0) for number in waiting])
        while waiting:
            for message in consumer.consume(_MANY, 1.0):
                error = message.error()
                if error is None:
                    ended = _finished(message.value() or b"")
                    if ended is not None:
                        seqno, changed = ended
                        seqnos.add(seqno)
                        finished += 1
                        events += changed > 0
                        rows += changed
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(message.partition() or 0)
                else:
                    raise RuntimeError(error.str())
    finally:
        consumer.close()
    return Counted(events, rows, dense=finished == len(seqnos) and seqnos == set(range(finished)))


def _finished(value: bytes) -> tuple[int, int] | None:
    """Seqno and rows of the event that a message finishes, from the first fields of schemas/fragment.avsc."""
    if crc32(value[_OPENING:-_CRC]) != int.from_bytes(value[-_CRC:], "big"):
        raise ValueError("a message's CRC is wrong")
    seqno, at = _long(value, _OPENING)
    _, at = _long(value, at)  # fragno
    last = value[at]
    _, at = _long(value, at + 1)  # epoch
    kind, at = _long(value, at)
    if not last or kind == _EPOCH:
        return None
    shard, at = _long(value, at)
    at += shard
    for _ in range(2):  # the partition's previous event, the last barrier
        _, at = _long(value, at)
    rows, _ = _long(value, at)
    return seqno, rows


def _long(value: bytes, at: int) -> tuple[int, int]:
    """Decodes an Avro long; returns it and the next offset."""
    number = shift = 0
    for byte in islice(value, at, at + 10):
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return (number >> 1) ^ -(number & 1), at + shift // 7
