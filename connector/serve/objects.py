"""The newest readings as JSON: `/api/services`, `/api/services/NAME`. docs/serving.md describes them.

Producer and applier have the names that `thl status --format json` gives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from connector.log.epochs.control import ControlState
from connector.log.epochs.newest_load import NewestLoad
from connector.serve.watcher import DOWN, Reading, TargetReading, Watcher
from connector.status.report import ServiceState, as_object

EPOCHS: Final = 10  # the newest ones that are shown
LOADS: Final = 200


class ServiceHealth(StrEnum):
    """The state of a service in one word."""

    OK = "ok"
    WARNING = "warning"  # problems, but both ends run
    DOWN = "down"  # producer or applier does not run
    UNKNOWN = "unknown"  # not read yet, or not for long


def health_of(watcher: Watcher) -> ServiceHealth:
    """Return the state of a service in one word."""
    reading = watcher.newest
    if reading is None or watcher.is_stale(reading):
        return ServiceHealth.UNKNOWN
    states = [reading.producer.state, *(target.applier.state for target in reading.targets.values())]
    if DOWN & set(states):
        return ServiceHealth.DOWN
    return ServiceHealth.WARNING if reading.problems or ServiceState.UNKNOWN in states else ServiceHealth.OK


def summary(watcher: Watcher) -> dict[str, Any]:
    """Return a service in the list of all."""
    reading = watcher.newest
    return {
        "name": watcher.service.name,
        "health": health_of(watcher),
        "readAt": _iso(reading.at / 1e6) if reading else None,
        "source": watcher.service.source,
        "targets": [target.name for target in watcher.service.targets],
        "problems": [one.text for one in reading.problems] if reading else [],
    }


def service_object(watcher: Watcher) -> dict[str, Any]:
    """Return all that is known of a service."""
    reading = watcher.newest
    found: dict[str, Any] = {**summary(watcher), "incidents": [one.as_object() for one in watcher.incidents]}
    if reading is None:
        return found
    return {
        **found,
        "log": _log(watcher, reading),
        "producer": as_object(reading.first.status)["producer"],
        "preparedSince": _iso(reading.prepared_since / 1e6) if reading.prepared_since else None,
        "loads": [_load(load) for load in reading.loads[:LOADS]],
        "targets": [
            _target(watcher, target.name, target.address, reading.targets[target.name])
            for target in watcher.service.targets
        ],
    }


def _log(watcher: Watcher, reading: Reading) -> dict[str, Any]:
    control, producer = reading.first.control, reading.producer
    return {
        "topic": watcher.service.config.topic,
        "logId": producer.log_id,
        "firstSeqno": producer.minimum_stored_seqno,
        "lastSeqno": producer.maximum_stored_seqno,
        "partitions": control.partitions.count if control and control.partitions else None,
        "shards": control.partitions.rule.by if control and control.partitions else None,
        "epochs": list(_epochs(control)),
        "trapped": [[one.first, one.last] for one in control.trapped] if control else [],
    }


def _epochs(control: ControlState | None) -> Iterator[dict[str, Any]]:
    for epoch in reversed(control.epochs[-EPOCHS:] if control else ()):
        yield {
            "epoch": epoch.epoch,
            "firstSeqno": epoch.first_seqno,
            "startedAt": _iso(epoch.started / 1e6),
            "reason": epoch.reason,
            "sourceId": epoch.source_id,
            "serverUuid": epoch.server_uuid,
        }


def _load(load: NewestLoad) -> dict[str, Any]:
    return {
        "table": str(load.table),
        "targets": list(load.targets),
        "state": load.state,
        "underWay": load.under_way,
        "repair": bool(load.keys),
        "rows": load.rows,
        "estimate": load.estimate,
        "why": load.why,
        "askedAt": _iso(load.asked_at / 1e6) if load.asked_at else None,
    }


def _target(watcher: Watcher, name: str, address: str, target: TargetReading) -> dict[str, Any]:
    estimate = target.estimate
    comparison = watcher.comparisons.get(name)
    return {
        "name": name,
        "address": address,
        "applier": as_object(target.observation.status)["applier"],
        "catchUpSeconds": target.catch_up_seconds,
        "appliedPerSecond": estimate.applied if estimate else None,
        "publishedPerSecond": estimate.published if estimate else None,
        "comparison": comparison.as_object() if comparison else None,
    }


def _iso(at: float | None) -> str | None:
    """Return a time as text.

    Args:
        at: seconds since 1970 UTC.
    """
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
