"""Releases the events that are finished, contiguous and not given up: the reader's side of the protocol, as pure code.

The log promises the following, and this module checks it:

- A partition shows its events in ascending order, each whole before the next begins. Every fragment names the
  partition's previous finished event, so a missing one is a hole and not an end.
- A producer that goes online writes a marker of its epoch to *every* partition, in one Kafka transaction. What an
  older epoch had not finished below the marker is given up; its seqno is given again, perhaps on another partition.
- Event N is therefore written by the newest epoch whose first seqno is not above N; a fragment of N from an older epoch
  belongs to a given-up event. A reader learns an epoch's first seqno from the history, from any
  partition's marker, or as an upper bound from the first message of that epoch that it reads.
- An epoch that continues without trapped events names them, and they are not released. A reader that has released one
  before fails, because its history is another one.

Partitions are read independently: a reader may read the new N of one partition before the given up N of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic

from connector.log.epochs.fork import TRAPPED_EVENTS, Range, overlaps
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_SEQNO, Epoch, Kind, LogId, Seqno
from connector.log.reading.event_range import EventRange, R, newest_barrier
from connector.log.reading.fragment_rules import trapped_by
from connector.log.reading.partition_state import PartitionState
from connector.log.reading.sequenced_partition import NO_LIMIT, B, SequencedPartition, UnfinishedEvent
from connector.log.rules import Rule
from connector.log.transaction.position import TargetPosition


@dataclass(slots=True)
class Release(Generic[B]):
    """An event, or the next part of one, that may be applied.

    Args:
        seqno, epoch: the event.
        header: the header of its newest fragment; of the last one when `complete`.
        bodies: the bodies since the previous release of the event.
        first: no part of the event was released before.
        complete: the event is finished and all events before it are released: it may be committed.
    """

    seqno: Seqno
    epoch: Epoch
    header: FragmentHeader
    bodies: list[B]
    first: bool
    complete: bool


@dataclass(frozen=True, slots=True)
class Voided:
    """An event that was released in part and then given up: forget its parts. Its seqno comes again."""

    seqno: Seqno


class EventSequencer(Generic[B, R]):
    """Releases the events of a log in the order of their seqnos, from a target's position on.

    After any error it is of no use: read again from the target's position.

    Args:
        topic: named in errors.
        partitions: the number of partitions of the log.
        position: the target's position at the start.
        history: the history of the log, read after the target was claimed; the target's position is proved to be on it.
    """

    def __init__(
        self, *, topic: str, partitions: int, position: TargetPosition, history: History | None = None
    ) -> None:
        self._applied = position.seqno
        self._next = Seqno(position.seqno + 1)
        self._epoch = position.epoch
        self._resumed = position.seqno
        self._rewound_from = position.rewound_from
        self._barrier: Seqno | None = None
        self._log_id: LogId = history.log_id if history else position.log_id
        self._exact: dict[Epoch, Seqno] = {r.epoch: r.first_seqno for r in history.epochs} if history else {}
        self._firsts: dict[Epoch, Seqno] = dict(self._exact)  # exact, or an upper bound
        self._forks: set[Epoch] = {r.epoch for r in history.epochs if r.forked} if history else set()
        self._trapped: tuple[Range, ...] = history.trapped if history else ()
        self._events: dict[Seqno, UnfinishedEvent[B]] = {}
        self._ready: list[Release[B] | tuple[EventRange[R], ...] | Voided] = []
        # Every event that the target lacks is at or after the offset where reading begins.
        self._partitions: list[SequencedPartition[B]] = [
            SequencedPartition(
                PartitionState(topic, p, position.offsets.get(p, 0), position.seqno), p in position.offsets
            )
            for p in range(partitions)
        ]

    @property
    def released(self) -> Seqno:
        """The last event that was finished with everything before it; `release` has given it or is about to."""
        return Seqno(self._next - 1)

    @property
    def waiting(self) -> int:
        """Fragments that are held until an event before theirs has come: with one partition always 0."""
        return sum(len(e.bodies) for e in self._events.values() if e.seqno != self._next)

    def waits(self, upto: Seqno) -> bool:
        """Return whether anything of an event up to this one is held."""
        return any(seqno <= upto for seqno in self._events)

    @property
    def partitions(self) -> int:
        """The number of partitions of the log."""
        return len(self._partitions)

    def ahead(self, partition: int) -> bool:
        """Return whether a partition is ahead: it has an event that waits for one before it, in another partition.

        A partition's events ascend. A given-up event has the seqno with which the next epoch begins, so nothing before
        it is later.
        """
        state = self._partitions[partition].state
        if state.unfinished:
            return state.seqno > self._next
        return state.tail is not None and state.tail >= self._next

    def accept(self, header: FragmentHeader, partition: int, offset: int, body: B) -> None:
        """Accept the next message of a partition.

        Args:
            header: the header of the fragment.
            partition: the partition that it was read from.
            offset: its offset; offsets ascend, with the gaps that Kafka's transaction markers leave.
            body: the message, released with the event.

        Raises:
            LogDamaged: something is missing before it, or it cannot be there by the protocol.
            HistoriesDiffer: the topic holds another log than before.
        """
        read = self._partitions[partition]
        state = read.state
        read.seen = True
        if header.kind is Kind.EPOCH:
            self._marker(read, offset, header)
            return
        if header.epoch != state.epoch:
            self._enter(read, offset, header)
        passed_over = header.seqno <= self._resumed or header.seqno >= read.limit
        if not state.fragment(header, offset, from_within=passed_over):
            self._continue(read, offset, header, body)
        elif not passed_over:
            self._begin(read, offset, header, body)
        elif header.last_frag:
            self._check_limit(read, offset, header)

    def accept_range(self, *ranges: EventRange[R]) -> bool:
        """Accept whole events as `accept` does for each of them, where they directly come next.

        Args:
            ranges: one, or of several partitions one each or more, in the order of each; they hold every event from the
                next to the last of all. Of several, only the last event may be a barrier.

        Returns:
            True if they were accepted. If not, nothing has changed, and `accept` of the first one has the reason.
        """
        last = max(events.header.seqno for events in ranges)
        if not _gapless(ranges, self._next, last) or self.waits(last):
            return False
        barrier = self._barrier
        tails = dict[int, tuple[Seqno | None, int]]()
        for events in ranges:
            read, header = self._partitions[events.partition], events.header
            state = read.state
            tail, next_offset = tails.get(events.partition, (state.tail, state.next_offset))
            newest = newest_barrier(header)
            if (
                state.seqno != NO_SEQNO
                or not self._epoch == state.epoch == header.epoch
                or header.seqno >= read.limit
                or events.offsets[0] < next_offset
                or events.prev_seqno != tail
                or events.last_barrier != self._barrier
                or (newest != events.last_barrier and state.partition)
                or (len(ranges) > 1 and header.last_barrier != events.last_barrier)
                or (header.barrier and header.seqno != last)
            ):
                return False
            tails[events.partition] = header.seqno, events.end
            barrier = newest if header.seqno == last else barrier
        if self._trapped and overlaps(self._trapped, self._next, last):
            return False
        for events in ranges:
            read = self._partitions[events.partition]
            read.state.tail, read.state.next_offset = tails[events.partition]
            read.seen = True
            read.starts.append((events.seqnos, events.offsets))
        self._barrier = barrier
        self._next = Seqno(last + 1)
        self._ready.append(ranges)
        if self._events:
            self._complete_next()
        return True

    def follows(self, events: EventRange[R]) -> bool:
        """Return whether a range comes next in its partition, after whole events of the same epoch."""
        state = self._partitions[events.partition].state
        return state.seqno == NO_SEQNO and state.epoch == events.header.epoch and state.tail == events.prev_seqno

    def release(self) -> list[Release[B] | tuple[EventRange[R], ...] | Voided]:
        """Drain what may be applied now, in seqno order.

        Every event of a single range may be committed; of several that were accepted together only the last.

        The event after the last complete one is released in parts as its fragments come, so that a large one is never
        in memory whole; if it is given up, a `Voided` follows its parts.
        """
        ready, self._ready = self._ready, []
        event = self._events.get(self._next)
        if event is not None and self._is_trapped(event.seqno):
            event.bodies = []
        if event is not None and event.bodies:
            ready.append(Release(event.seqno, event.epoch, event.header, event.bodies, not event.parts, complete=False))
            event.bodies = []
            event.parts = True
        return ready

    def resumable(self, upto: Seqno) -> dict[int, int]:
        """Return the offsets to resume from, once everything up to and including `upto` is committed on the target.

        An event after `upto` of which anything was read keeps its partition's offset at its fragment 0, however many
        later events of that partition are finished.

        Args:
            upto: not above `released`, and never below that of an earlier call.

        Returns:
            Partition → offset. A partition of which nothing is known is left out: read it from its beginning.
        """
        if not self._applied <= upto < self._next:
            raise ValueError(f"resumable({upto}) after {self._applied}, with everything released up to {self.released}")
        self._applied = upto
        offsets = ((partition, read.resumable(upto)) for partition, read in enumerate(self._partitions))
        return {partition: offset for partition, offset in offsets if offset is not None}

    def _begin(self, read: SequencedPartition[B], offset: int, header: FragmentHeader, body: B) -> None:
        """Accept the first fragment of an event that is to be released."""
        seqno = header.seqno
        read.starts.append(((seqno,), (offset,)))
        if seqno < self._next or seqno in self._events:
            read.state.damaged(header, offset, Rule.EVENT_TWICE)
        if header.last_frag and seqno == self._next:
            self._complete(read, header, [body], first=True)
            if self._events:
                self._complete_next()
            return
        event = UnfinishedEvent(read, seqno, header.epoch, header, [body], finished=header.last_frag)
        self._events[seqno] = event
        if not header.last_frag:
            read.event = event

    def _continue(self, read: SequencedPartition[B], offset: int, header: FragmentHeader, body: B) -> None:
        event = read.event
        if event is not None:
            event.header = header
            event.bodies.append(body)
        if not header.last_frag:
            return
        read.event = None
        if event is None:
            self._check_limit(read, offset, header)
            return
        event.finished = True
        self._complete_next()

    def _marker(self, read: SequencedPartition[B], offset: int, header: FragmentHeader) -> None:
        """Accept a marker: a producer went online, and the partition's unfinished event is given up."""
        epoch, first, state = header.epoch, header.seqno, read.state
        self._log_id = state.marker(header, offset, self._log_id)
        if state.seqno != NO_SEQNO and read.starts and read.starts[-1][0][0] == state.seqno:
            read.starts.pop()
        state.check_finished(header, offset)
        if first != self._exact.setdefault(epoch, first):
            state.damaged(header, offset, Rule.EPOCH_BEGIN_CHANGED, began_with=self._exact[epoch])
        if epoch > self._epoch and first < self._next:
            state.damaged(header, offset, Rule.GIVEN_AGAIN, finished=self.released)
        if TRAPPED_EVENTS in header.metadata and epoch not in self._forks:
            self._fork(read, offset, header)
        self._learn(read, offset, header, first)
        state.begin(epoch)
        read.event = None
        read.limit = self._limit(epoch)

    def _fork(self, read: SequencedPartition[B], offset: int, header: FragmentHeader) -> None:
        """Accept a fork: the producer continues without trapped events, whose released parts are void.

        A rewound target holds more than was released: everything up to `rewound_from`.
        """
        held = max(self.released, self._rewound_from) if header.seqno > self._rewound_from else self.released
        self._trapped += trapped_by(
            header,
            held if header.epoch > self._epoch else NO_SEQNO,
            read.state.at(offset),
            hint="fill the target again (docs/runbooks.md)",
        )
        self._forks.add(header.epoch)
        for event in self._events.values():
            if event.parts and self._is_trapped(event.seqno):
                event.parts = False
                self._ready.append(Voided(event.seqno))

    def _is_trapped(self, seqno: Seqno) -> bool:
        return bool(self._trapped) and overlaps(self._trapped, seqno, seqno)

    def _enter(self, read: SequencedPartition[B], offset: int, header: FragmentHeader) -> None:
        """Accept another epoch without a marker, which only the first message of a partition may have."""
        read.state.enter(header, offset)
        if header.seqno < self._firsts.get(header.epoch, NO_LIMIT):
            self._learn(read, offset, header, header.seqno)
        read.limit = self._limit(header.epoch)

    def _learn(self, read: SequencedPartition[B], offset: int, header: FragmentHeader, first: Seqno) -> None:
        """Note that an epoch begins at `first` or before: events of older epochs from there on are given up."""
        epoch = header.epoch
        self._firsts[epoch] = min(first, self._firsts.get(epoch, first))
        for other in self._partitions:
            if other.state.epoch < epoch:
                other.limit = min(other.limit, first)
                if other.event is not None and other.state.seqno >= first:
                    other.event = None
        for event in [e for e in self._events.values() if e.epoch < epoch and e.seqno >= first]:
            if event.finished:
                read.state.damaged(header, offset, Rule.GIVEN_AGAIN, finished=event.seqno)
            del self._events[event.seqno]
            if event.parts:
                self._ready.append(Voided(event.seqno))

    def _limit(self, epoch: Epoch) -> Seqno:
        return min((first for other, first in self._firsts.items() if other > epoch), default=NO_LIMIT)

    def _check_limit(self, read: SequencedPartition[B], offset: int, header: FragmentHeader) -> None:
        """Check the end of an event that is not released: no newer epoch may have given it again."""
        if header.seqno >= read.limit:
            read.state.damaged(header, offset, Rule.FINISHED_LATE, newer_epoch_from=read.limit)

    def _complete(self, read: SequencedPartition[B], header: FragmentHeader, bodies: list[B], *, first: bool) -> None:
        """Complete the next event: release it, unless it is trapped."""
        seqno = header.seqno
        if header.epoch != self._epoch:
            self._change(read, header)
        barrier = self._barrier
        if header.last_barrier != barrier and (barrier is not None or header.last_barrier > self._resumed):
            missing = barrier is None or header.last_barrier > barrier
            rule = Rule.BARRIER_MISSING if missing else Rule.BARRIER_NOT_NAMED
            read.state.damaged(header, None, rule, barrier_read=barrier)
        if header.barrier and read.state.partition:
            read.state.damaged(header, None, Rule.BARRIER_ELSEWHERE)
        self._barrier = newest_barrier(header)
        if not self._is_trapped(seqno):
            self._ready.append(Release(seqno, header.epoch, header, bodies, first, complete=True))
        self._next = Seqno(seqno + 1)

    def _change(self, read: SequencedPartition[B], header: FragmentHeader) -> None:
        """Check an event whose epoch is not that of the event before it."""
        if header.epoch < self._epoch:
            read.state.damaged(header, None, Rule.EPOCH_DECREASED, epoch_before=self._epoch)
        if header.seqno < self._exact.get(header.epoch, 0):
            read.state.damaged(header, None, Rule.BEFORE_EPOCH, began_with=self._exact[header.epoch])
        self._epoch = header.epoch

    def _complete_next(self) -> None:
        events = self._events
        while (event := events.get(self._next)) is not None and event.finished:
            del events[event.seqno]
            self._complete(event.partition, event.header, event.bodies, first=not event.parts)


def _gapless(ranges: Sequence[EventRange[R]], first: Seqno, last: Seqno) -> bool:
    """Return whether ranges hold each event from one to another once."""
    if sum(len(events.seqnos) for events in ranges) != last + 1 - first:
        return False
    if len(ranges) == 1:
        seqnos = ranges[0].seqnos
        return (seqnos[0] == first and isinstance(seqnos, range)) or list(seqnos) == list(range(first, last + 1))
    return sorted(chain.from_iterable(events.seqnos for events in ranges)) == list(range(first, last + 1))
