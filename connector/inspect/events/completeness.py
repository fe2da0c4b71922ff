"""Whether what is listed is all that the log has: by the order of seqnos and by the producer's position."""

from __future__ import annotations

from collections.abc import Mapping

from connector.config.model import Config
from connector.errors import LogDamaged
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import Tails
from connector.log.format.first_fields import first_fields
from connector.log.ids import NO_SEQNO, Seqno


class Completeness:
    """Finds events that are missing among those that are listed by seqno.

    Events up to `floor` may be missing, because retention deleted them or the listing begins behind them in their
    partition; so may those from `ceiling` on, where the listing ends before them in some partition.

    Args:
        topic: for errors.
        tails: as read before the listing began: what the position names is visible.
        first: the event that the listing begins with.
        last: that it ends with; None: the log's last one.
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
        """Of one partition nothing is listed from this event on."""
        self.ceiling = seqno if self.ceiling is None else min(self.ceiling, seqno)

    def take(self, seqno: int) -> None:
        """The next finished event.

        Raises:
            LogDamaged: one before it is missing.
        """
        self._check(min(seqno - 1, self._last))
        self._next = max(self._next, seqno + 1)

    def end(self) -> None:
        """Nothing more is listed.

        Raises:
            LogDamaged: there should be.
        """
        self._check(self._last)
        if self._lost is not None and self._to_end:
            raise self._lost

    def _check(self, upto: int) -> None:
        """Check that nothing is missing between what was listed last and an event."""
        missing = max(self._next, self._floor + 1)
        if missing > upto or (self.ceiling is not None and missing >= self.ceiling):
            return
        if self._lost is not None:
            raise self._lost
        raise LogDamaged(
            "An event is missing",
            hint=f"thl list -low {missing + 1} lists what is behind it",
            topic=self._topic,
            seqno=missing,
        )


def floor_of(config: Config, tails: Tails, starts: Mapping[int, int], ends: Mapping[int, int]) -> Seqno:
    """The last event that may stand, in some partition, before where the listing begins.

    Args:
        config: the service and its brokers.
        tails: of all partitions.
        starts: partition → the offset that it is listed from.
        ends: partition → the offset behind its last message.
    """
    floor = NO_SEQNO
    with LogReader(config, point_lookup=True) as log:
        for partition, start in starts.items():
            if start == 0:
                continue
            met = log.first(partition, start, ends[partition])
            if met is not None:
                place = first_fields(met[1], f"{config.topic}-{partition}@{met[0]}")
                floor = max(floor, place.seqno if place.fragno else place.prev_seqno)
                continue
            tail = tails.found[partition]
            known = tails.position.tails.get(partition, NO_SEQNO) if tails.position else NO_SEQNO
            floor = max(floor, tail.seqno if tail.readable else known)
    return floor
