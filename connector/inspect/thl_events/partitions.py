"""Reads the event topic for listings: committed messages only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from connector.config.model import Config
from connector.inspect.thl_events.decoding import header_of
from connector.kafka.ends import partition_bounds
from connector.kafka.log_reader import LogReader
from connector.log.format.first_fields import first_fields
from connector.log.ids import Kind, Seqno
from connector.log.reading.search import Probe, before_time


class Timed(NamedTuple):
    """The fields of a fragment that a search by time needs."""

    seqno: Seqno
    commit_time: int | None


class Partitions:
    """Reads partitions, each with its own connection so that several can be read side by side, or with a given one.

    Every method raises BrokerUnavailable when the brokers do not answer, PreflightError when they refuse access, and
    LogDamaged for a message that is not a fragment.

    Args:
        config: the service and its brokers.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.topic = config.topic

    def bounds(self) -> dict[int, tuple[int, int]]:
        """The first offset of each partition, and the one after its last.

        Raises:
            ConfigError: there is no such log.
        """
        return partition_bounds(self._config)

    def offset_of(self, seqno: int, partition: int, bounds: tuple[int, int]) -> int:
        """The first offset of an event's attempts, or of the next event."""
        with LogReader(self._config, point_lookup=True) as log:
            return log.offset_of(partition, seqno, bounds)

    def beginning(self, log: LogReader, partition: int, offset: int, end: int) -> int:
        """The first offset, from one on, at which an event or an epoch begins; `end` when there is none."""
        found = log.first(partition, offset, end)
        if found is None:
            return end
        fields = first_fields(found[1], self.at(partition, found[0]))
        return found[0] if fields.fragno == 0 else log.offset_of(partition, fields.seqno + 1, (found[0], end))

    def before_time(self, time: int, slack: int, partition: int, bounds: tuple[int, int]) -> int:
        """An offset at or before the first event that was committed at a time or later.

        Args:
            time: µs since 1970 UTC.
            slack: µs by which commit times may decrease from one event to a later one.
            partition, bounds: the offsets to search.
        """
        with LogReader(self._config, point_lookup=True) as log:

            def read(offset: int) -> Probe[Timed] | None:
                found = log.first(partition, offset, bounds[1])
                return found and Probe(found[0], self._timed(partition, *found))

            return before_time(read, *bounds, time, slack)

    def messages(
        self, partition: int, start: int, end: int, log: LogReader | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Offsets and messages, from `start` to before `end`."""
        if log is not None:
            yield from log.fragments(partition, start, end)
        elif start < end:
            with LogReader(self._config) as own:
                yield from own.fragments(partition, start, end)

    def at(self, partition: int, offset: int) -> str:
        """topic-partition@offset."""
        return f"{self.topic}-{partition}@{offset}"

    def _timed(self, partition: int, offset: int, value: bytes) -> Timed:
        fields = first_fields(value, self.at(partition, offset))
        if fields.kind is Kind.EPOCH:
            return Timed(fields.seqno, None)
        return Timed(fields.seqno, header_of(value, self.at(partition, offset))["commit_time"])
