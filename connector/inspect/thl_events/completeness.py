"""Finds events that are missing in a listing, by their seqnos and the producer's position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from connector.config.model import Config
from connector.errors import LogDamaged
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import Tails
from connector.log.epochs.history import History
from connector.log.ids import NO_SEQNO, LogId, Seqno
from connector.log.rules import Rule, broken


class Completeness:
    """Finds missing events in a listing by seqno.

    Events up to `floor` may be missing: retention deleted them, or the listing of their partition begins after them.
    Events from `ceiling` on may be missing: the listing of some partition ends before them.

    Args:
        topic: the event topic, for errors.
        tails: read before the listing began, so that the events that the position names are visible.
        first: the first event of the listing.
        last: the last one; None: the log's last one.
        floor: the result of `floor_of`.
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
        raise broken(
            LogDamaged,
            Rule.EVENT_MISSING,
            hint=f"thl list --from-seqno {missing + 1} lists the later events",
            topic=self._topic,
            seqno=missing,
        )


def floor_of(config: Config, tails: Tails, spans: Mapping[int, tuple[int, int]]) -> Seqno:
    """The last event that some partition may hold before its first listed offset.

    Args:
        config: the service and its brokers.
        tails: the tails of all partitions.
        spans: partition → its first listed offset, and the one after its last message.
    """
    found = {partition: tail.seqno for partition, tail in tails.found.items() if tail.readable}
    position = tails.position and replace(tails.position, tails={**tails.position.tails, **found})
    with LogReader(config, point_lookup=True) as log:
        epochs = log.control(may_lack=True).epochs  # a damaged log is listed, too
        history = History(LogId(""), epochs, position.last_finished if position else NO_SEQNO)
        return log.incomplete_upto(spans, history, position)
