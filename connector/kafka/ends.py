"""Finds the first and the last event of a log on Kafka, without a scan."""

from __future__ import annotations

from dataclasses import dataclass

from connector.config.model import Config
from connector.errors import ConfigError
from connector.kafka.log_reader import LogReader
from connector.log.format.first_fields import first_fields
from connector.log.format.fragment_reader import header_of
from connector.log.ids import NO_SEQNO, Kind, Seqno
from connector.log.reading.search import backward_probes


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The two ends of the log.

    Args:
        oldest, newest: finished events in Kafka, NO_SEQNO when there are none.
        newest_commit: commit time of the newest, µs since 1970 UTC.
    """

    oldest: Seqno = NO_SEQNO
    newest: Seqno = NO_SEQNO
    newest_commit: int | None = None


def no_log(config: Config) -> ConfigError:
    """The error that a service has no log."""
    return ConfigError(
        "The service has no log on these brokers: `thl produce` begins one",
        hint="check service and kafka.bootstrap",
        service=config.service,
        topic=config.topic,
    )


def partition_bounds(config: Config) -> dict[int, tuple[int, int]]:
    """The first offset of each partition of the event topic, and the one after its last.

    Raises:
        ConfigError: there is no such log.
        BrokerUnavailable, PreflightError: as `LogReader`.
    """
    with LogReader(config) as log:
        count = log.partitions(config.topic)
        if not count:
            raise no_log(config)
        return {partition: log.bounds(partition) for partition in range(count)}


def log_ends(config: Config, bounds: dict[int, tuple[int, int]] | None = None) -> LogEnds:
    """Find the log's two ends.

    Args:
        config: the service and its brokers.
        bounds: of the partitions; read when not given.

    Raises:
        ConfigError: there is no such log.
        BrokerUnavailable, PreflightError, LogDamaged: as `LogReader`.
    """
    oldest, newest, commit = NO_SEQNO, NO_SEQNO, None
    bounds = partition_bounds(config) if bounds is None else bounds
    with LogReader(config, point_lookup=True) as log:
        for partition, (start, end) in bounds.items():
            first = _first(config.topic, log, partition, start, end)
            oldest = first if oldest == NO_SEQNO else min(oldest, first) if first != NO_SEQNO else oldest
            last = last_ending(config.topic, log, partition, start, end)
            if last is None:
                continue
            header = header_of(last[1], f"{config.topic}-{partition}@{last[0]}")
            if header.seqno > newest:
                newest, commit = header.seqno, header.commit_time
        return LogEnds(oldest, newest, commit)


def last_ending(topic: str, log: LogReader, partition: int, start: int, end: int) -> tuple[int, bytes] | None:
    """The offset and message of the last fragment that finishes an event, found by probes backwards from the end."""
    for probe in backward_probes(start, end):
        found: tuple[int, bytes] | None = None
        for offset, value in log.fragments(partition, probe.start, probe.stop):
            if first_fields(value, f"{topic}-{partition}@{offset}").finishes:
                found = offset, value
        if found is not None:
            return found
    return None


def _first(topic: str, log: LogReader, partition: int, start: int, end: int) -> Seqno:
    """The first event with its first fragment."""
    for offset, value in log.fragments(partition, start, end):
        fields = first_fields(value, f"{topic}-{partition}@{offset}")
        if fields.kind is not Kind.EPOCH and fields.fragno == 0:
            return fields.seqno
    return NO_SEQNO
