"""Releases the events of a relay, which has them whole and in the order of the log.

`EventSequencer` has decided their order when they were written: none that was given up is among them. Here it is only
checked that none is missing.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic

from connector.errors import LogDamaged
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_EPOCH, Seqno
from connector.log.reading.event_range import EventRange, R
from connector.log.reading.event_sequencer import Release, Voided
from connector.log.reading.sequenced_partition import B
from connector.log.transaction.position import TargetPosition

_HINT: Final = "apply these events from Kafka: thl apply without --relay, where a broker answers"


class RelaySequencer(Generic[B, R]):
    """The `EventOrder` of a relay, whose events have the partitions and offsets of the topic. It gives up none.

    Args:
        folder: the relay, named in errors.
        position: the target's position at the start.
    """

    partitions = 1
    waiting = 0

    def __init__(self, *, folder: str, position: TargetPosition) -> None:
        self._folder = folder
        self._next = Seqno(position.seqno + 1)
        self._epoch = position.epoch
        self._header: FragmentHeader | None = None  # of the newest fragment of the unfinished event
        self._bodies: list[B] = []
        self._parts = False
        self._ready: list[Release[B] | tuple[EventRange[R], ...] | Voided] = []
        self._ends: dict[int, deque[tuple[Seqno, int]]] = {}  # partition → each event, and the offset after it
        self._resumable: dict[int, int] = {}

    @property
    def released(self) -> Seqno:
        """The last event that was finished."""
        return Seqno(self._next - 1)

    def waits(self, _upto: Seqno) -> bool:
        """Return False: nothing waits for an event before it."""
        return False

    def ahead(self, _partition: int) -> bool:
        """Return False: events are in order."""
        return False

    def follows(self, _events: EventRange[R]) -> bool:
        """Return True: a relay has no segments."""
        return True

    def pass_over(self, last: Seqno) -> None:
        """Continue after events that are trapped, up to this one."""
        self._next = max(self._next, Seqno(last + 1))

    def accept(self, header: FragmentHeader, partition: int, offset: int, body: B) -> None:
        """Accept the next fragment.

        Raises:
            LogDamaged: something is missing before it.
        """
        before = self._header
        fragno = 0 if before is None else before.fragno + 1
        if header.seqno != self._next or header.fragno != fragno:
            raise self._missing(header, fragno)
        self._check_epoch(header)
        self._bodies.append(body)
        self._header = header
        if not header.last_frag:
            return
        release = Release(header.seqno, header.epoch, header, self._bodies, not self._parts, complete=True)
        self._ready.append(release)
        self._header, self._bodies, self._parts = None, [], False
        self._finished(header, partition, offset + 1)

    def accept_range(self, *ranges: EventRange[R]) -> bool:
        """Accept whole events where they directly come next; return False, and change nothing, where they do not.

        Args:
            ranges: one.
        """
        (events,) = ranges
        count = events.header.seqno + 1 - self._next
        if self._header is not None or len(events.seqnos) != count or events.seqnos[0] != self._next:
            return False
        self._check_epoch(events.header)
        self._ready.append(ranges)
        self._finished(events.header, events.partition, events.end)
        return True

    def release(self) -> list[Release[B] | tuple[EventRange[R], ...] | Voided]:
        """Drain what may be applied now; an unfinished event is released in parts."""
        ready, self._ready = self._ready, []
        if self._header is not None and self._bodies:
            header = self._header
            ready.append(Release(header.seqno, header.epoch, header, self._bodies, not self._parts, complete=False))
            self._bodies, self._parts = [], True
        return ready

    def resumable(self, upto: Seqno) -> dict[int, int]:
        """Return the offsets of the topic to resume from after an event: of each partition that has had one."""
        for partition, ends in self._ends.items():
            while ends and ends[0][0] <= upto:
                self._resumable[partition] = ends.popleft()[1]
        return dict(self._resumable)

    def _finished(self, header: FragmentHeader, partition: int, end: int) -> None:
        self._epoch = header.epoch
        self._next = Seqno(header.seqno + 1)
        self._ends.setdefault(partition, deque()).append((header.seqno, end))

    def _check_epoch(self, header: FragmentHeader) -> None:
        if header.epoch < self._epoch != NO_EPOCH:
            raise LogDamaged(
                "an event of the relay is of an older epoch than the one before it",
                hint=_HINT,
                folder=self._folder,
                seqno=header.seqno,
                epoch=header.epoch,
                epoch_before=self._epoch,
            )

    def _missing(self, header: FragmentHeader, fragno: int) -> LogDamaged:
        return LogDamaged(
            f"the relay lacks fragment {fragno} of event {self._next}",
            hint=_HINT,
            folder=self._folder,
            seqno=header.seqno,
            fragno=header.fragno,
        )
