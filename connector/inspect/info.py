"""Describes a log for `thl info`: topics, offsets, epochs, the first and the last event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from connector.config.model import Config
from connector.errors import LogDamaged
from connector.inspect.formats.tungsten import time_of
from connector.inspect.thl_events.log import LogList
from connector.inspect.thl_events.partitions import Partitions
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import read_tails
from connector.kafka.topics import Topics
from connector.log.epochs.control import EpochRecord
from connector.log.ids import NO_SEQNO, Seqno

SAMPLES: Final = 16  # number of sampled messages per partition
MEGABYTE: Final = 1 << 20
FOR_EVER: Final = -1


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """A partition of the event topic.

    Args:
        partition: number of the partition.
        start, end: the first offset, and the one after the last.
        oldest, newest: finished events, NO_SEQNO when there are none.
        about_bytes: approximate uncompressed bytes of its messages, from samples: brokers do not return the size.
    """

    partition: int
    start: int
    end: int
    oldest: Seqno
    newest: Seqno
    about_bytes: int


@dataclass(frozen=True, slots=True)
class LogInfo:
    """A log.

    Args:
        topic: the event topic.
        log_id: the log's id.
        created: µs since 1970 UTC.
        retention_hours: retention of events; -1: unlimited.
        partitions: the partitions of the event topic.
        oldest, newest: the last fragments' headers of the first and the last event; None when there is none.
        epochs: all epochs.
        lost: the error of a partition that lost its end; None if all are complete.
    """

    topic: str
    log_id: str
    created: int
    retention_hours: float
    partitions: tuple[PartitionInfo, ...]
    oldest: Mapping[str, Any] | None
    newest: Mapping[str, Any] | None
    epochs: tuple[EpochRecord, ...]
    lost: LogDamaged | None = None

    @property
    def oldest_seqno(self) -> int:
        """The seqno, NO_SEQNO when there is none."""
        return self.oldest["seqno"] if self.oldest else NO_SEQNO

    @property
    def newest_seqno(self) -> int:
        """The seqno, NO_SEQNO when there is none."""
        return self.newest["seqno"] if self.newest else NO_SEQNO

    @property
    def events(self) -> int:
        """Number of finished events in Kafka: seqnos have no holes, unless a partition lost its end."""
        return self.newest_seqno - self.oldest_seqno + 1 if self.newest else 0

    @property
    def forks(self) -> frozenset[int]:
        """Epochs whose source is another server than that of the epoch before."""
        return frozenset(
            after.epoch for before, after in pairwise(self.epochs) if before.server_uuid != after.server_uuid
        )


def log_info(config: Config) -> LogInfo:
    """Read the description of a log.

    Raises:
        BrokerUnavailable: the brokers do not answer.
        ConfigError: there is no such log.
        PreflightError: the brokers refuse access.
        LogDamaged: a message is not a fragment, or a record cannot be read.
    """
    bounds = Partitions(config).bounds()
    lost = read_tails(config).lost
    log = LogList(config)
    found, oldest, newest = [], None, None
    with LogReader(config, point_lookup=True) as reader:
        control = reader.control()
        for partition, (start, end) in bounds.items():
            first = log.first_whole(reader, partition, start, end)
            last = log.last_ending(reader, partition, start, end)
            if first is not None and (oldest is None or first.seqno < oldest["seqno"]):
                oldest = first.ending
            if last is not None and (newest is None or last["seqno"] > newest["seqno"]):
                newest = last
            found.append(
                PartitionInfo(
                    partition,
                    start,
                    end,
                    first.seqno if first else NO_SEQNO,
                    Seqno(last["seqno"]) if last else NO_SEQNO,
                    _about_bytes(reader, partition, start, end),
                )
            )
    retention = int(Topics(config).setting("retention.ms"))
    return LogInfo(
        config.topic,
        control.log.log_id if control.log else "",
        control.log.created if control.log else 0,
        FOR_EVER if retention < 0 else retention / 3_600_000,
        tuple(found),
        oldest,
        newest,
        control.epochs,
        lost,
    )


def as_object(info: LogInfo) -> dict[str, object]:
    """The description for JSON."""
    return {
        "log": info.topic,
        "logId": info.log_id,
        "created": time_of(info.created),
        "aboutBytes": sum(one.about_bytes for one in info.partitions),
        "minimumStoredSeqNo": info.oldest_seqno,
        "maximumStoredSeqNo": info.newest_seqno,
        "events": info.events,
        "oldest": _event(info.oldest),
        "newest": _event(info.newest),
        "retentionHours": info.retention_hours,
        "partitions": [
            {
                "partition": one.partition,
                "start": one.start,
                "end": one.end,
                "minimumStoredSeqNo": one.oldest,
                "maximumStoredSeqNo": one.newest,
                "aboutBytes": one.about_bytes,
            }
            for one in info.partitions
        ],
        "epochs": [
            {
                "epoch": one.epoch,
                "firstSeqno": one.first_seqno,
                "started": time_of(one.started),
                "reason": one.reason,
                "sourceId": one.source_id,
                "serverUuid": one.server_uuid,
                "fork": one.epoch in info.forks,
            }
            for one in info.epochs
        ],
    }


def as_lines(info: LogInfo) -> Iterator[str]:
    """The description as `name = value` lines, with Tungsten's names where it has them."""
    yield f"log = {info.topic} ({info.log_id or 'no log id'}, since {time_of(info.created)})"
    yield f"logs size = about {_megabytes(sum(one.about_bytes for one in info.partitions))}"
    yield f"min seq# = {info.oldest_seqno}"
    yield f"max seq# = {info.newest_seqno}"
    yield f"events = {info.events}"
    for name, event in (("oldest", info.oldest), ("newest", info.newest)):
        yield f"{name} event = {_described(event)}"
    yield f"retention = {'unlimited' if info.retention_hours == FOR_EVER else f'{info.retention_hours:g} hours'}"
    for one in info.partitions:
        events = "no events" if one.newest == NO_SEQNO else f"seqnos {one.oldest} to {one.newest}"
        yield (
            f"partition {one.partition} = offsets {one.start} to {one.end}, {events}, "
            f"about {_megabytes(one.about_bytes)}"
        )
    for epoch in info.epochs:
        fork = ", another server than before" if epoch.epoch in info.forks else ""
        yield (
            f"epoch {epoch.epoch} = from seqno {epoch.first_seqno}, {epoch.reason} {time_of(epoch.started)}, "
            f"source {epoch.source_id}, server {epoch.server_uuid}{fork}"
        )


def _event(ending: Mapping[str, Any] | None) -> dict[str, object] | None:
    if ending is None:
        return None
    return {
        "seqno": ending["seqno"],
        "eventId": ending["event_id"],
        "gtid": ending["gtid"],
        "time": time_of(ending["commit_time"]),
    }


def _described(event: Mapping[str, Any] | None) -> str:
    return f"{event['event_id']} ({time_of(event['commit_time'])})" if event else "none"


def _about_bytes(log: LogReader, partition: int, start: int, end: int) -> int:
    """The size estimated from some messages; markers of Kafka transactions count as messages."""
    probes = (log.first(partition, offset, end) for offset in range(start, end, max((end - start) // SAMPLES, 1)))
    sizes = [len(found[1]) for found in probes if found is not None]
    return round(sum(sizes) / len(sizes) * (end - start)) if sizes else 0


def _megabytes(size: int) -> str:
    return f"{size / MEGABYTE:.2f} MB"
