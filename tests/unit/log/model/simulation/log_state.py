"""What the topics of a log say, read to their ends."""

from __future__ import annotations

from typing import Any

from connector.kafka.prepared_records import PreparedReader, PreparedState
from connector.log.epochs.control import ControlState
from connector.log.transaction.position import PositionRecord
from connector.log.writing.tail import TailFound
from tests.unit.log.model.simulation.kafka import CONTROL, EVENTS, POSITION, PREPARED, Kafka


def read_control(kafka: Kafka) -> ControlState:
    """The control topic."""
    records: dict[Any, Any] = dict(kafka.read_whole(CONTROL))
    epochs = sorted((r for key, r in records.items() if key not in ("log", "partitions")), key=lambda r: r.epoch)
    return ControlState(records.get("log"), records.get("partitions"), tuple(epochs))


def read_position(kafka: Kafka) -> PositionRecord | None:
    """The newest position."""
    records = kafka.read_whole(POSITION)
    return records[-1][1] if records else None


def read_prepared(kafka: Kafka) -> PreparedState:
    """What is kept of prepared transactions."""
    found = PreparedReader()
    for offset, (key, value) in enumerate(kafka.read_whole(PREPARED)):
        found.accept(offset, key, value)
    return found.state(0)


def read_tails(kafka: Kafka) -> dict[int, TailFound]:
    """What stands last in every partition."""
    found = {}
    for partition in kafka.topics[EVENTS]:
        values = kafka.read_whole(EVENTS, partition.number)
        newest = values[-1][0] if values else None
        found[partition.number] = TailFound.of(newest, start=partition.start, end=partition.end)
    return found
