"""Finds events that are missing in a listing, by their seqnos and the producer's position."""

from __future__ import annotations

from collections.abc import Mapping

from connector.config.model import Config
from connector.errors import LogDamaged
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import Tails
from connector.log.format.first_fields import first_fields
from connector.log.ids import NO_SEQNO, Seqno


class Completeness:
    """Finds missing events in a listing by seqno.

    Events up to `floor` may be missing: retention deleted them, or the listing of their partition begins after them.
    Events from `ceiling` on may be missing: the listing of some partition ends before them.

    Args:
        topic: for errors.
        tails: read before the listing began, so that the events that the position names are visible.
        first: the first event of the listing.
        last: the last one; None: the log's last one.
        floor: see `floor_of`.
    """

    def __init__(self, topic: str, tails: Tails, first: int, last: int | None, floor: Seqno) -> None:
        position = tails.position
        newest = position.last_finished if position else NO_SEQNO
        self._topic = topic
        self._lost = tails.lost
        self._next = first
        self._to_end = last is None or position is None
        self._last = newest if last is None else min(last, newest)
        self._floor = floor
        self.ceiling: int | None = None

    def stops(self, seqno: int) -> None:
        """Note that one partition is not listed from this event on."""
        self.ceiling = seqno if self.ceiling is None else min(self.ceiling, seqno)

    def accept(self, seqno: int) -> None:
        """Accept the next finished event.

        Raises:
            LogDamaged: one before it is missing.
        """
        self._check(min(seqno - 1, self._last))
        self._next = max(self._next, seqno + 1)

    def end(self) -> None:
        """End the listing.

        Raises:
            LogDamaged: events at its end are missing.
        """
        self._check(self._last)
        if self._lost is not None and self._to_end:
            raise self._lost

    def _check(self, upto: int) -> None:
        """Check that no event up to one is missing after the last listed one."""
        missing = max(self._next, self._floor + 1)
        if missing > upto or (self.ceiling is not None and missing >= self.ceiling):
            return
        if self._lost is not None:
            raise self._lost
        raise LogDamaged(
            "an event is missing",
            hint=f"thl list --from-seqno {missing + 1} lists the later events",
            topic=self._topic,
            seqno=missing,
        )


def floor_of(config: Config, tails: Tails, starts: Mapping[int, int], ends: Mapping[int, int]) -> Seqno:
    """The last event that some partition may hold before its first listed offset.

    Args:
        config: the service and its brokers.
        tails: of all partitions.
        starts: partition → its first listed offset.
        ends: partition → the offset after its last message.
    """
    floor = NO_SEQNO
    with LogReader(config, point_lookup=True) as log:
        for partition, start in starts.items():
            if start == 0:
                continue
            first = log.first(partition, start, ends[partition])
            if first is not None:
                fields = first_fields(first[1], f"{config.topic}-{partition}@{first[0]}")
                floor = max(floor, fields.seqno if fields.fragno else fields.prev_seqno)
                continue
            tail = tails.found[partition]
            known = tails.position.tails.get(partition, NO_SEQNO) if tails.position else NO_SEQNO
            floor = max(floor, tail.seqno if tail.readable else known)
    return floor
