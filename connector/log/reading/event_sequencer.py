"""Which events are finished, contiguous and not given up: the reader's side of the protocol, as pure code.

What the log promises, and what is checked here of it:

- A partition shows its events in ascending order, each whole before the next begins. Every fragment names the
  partition's previous finished event, so a missing one is a hole and not an end.
- A producer that goes online writes a marker of its epoch to *every* partition, in one Kafka transaction. What an
  older epoch had not finished below the marker is given up; its seqno is given again, perhaps on another partition.
- So event N is the work of the newest epoch whose first seqno is not above N; a fragment of N from an older epoch
  belongs to an event that was given up. A reader learns an epoch's first seqno from the history, from any
  partition's marker, or as an upper bound from the first thing of that epoch it meets.
- An epoch that goes on without trapped events tells which; these are passed over as if they were not there. Whoever has
  taken one before is told that his history is another.

Partitions are read independently: a reader may meet the new N of one partition before the given up N of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NoReturn

from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_SEQNO, Epoch, Kind, LogId, Seqno
from connector.log.reading.event_range import EventRange, R, newest_barrier
from connector.log.reading.fragment_rules import (
    damaged,
    interrupted,
    log_of,
    trapped_by,
    unannounced,
    unexpected,
    unlinked,
)
from connector.log.reading.partition_state import NO_LIMIT, B, PartitionState, UnfinishedEvent
from connector.log.transaction.position import TargetPosition
from connector.log.writing.fork import TRAPPED_EVENTS, Range, meets
from connector.log.writing.history import History


@dataclass(slots=True)
class Release(Generic[B]):
    """An event, or the next part of one, that may be taken.

    Args:
        seqno, epoch: which event.
        header: of its newest fragment; the last one's when `complete`.
        bodies: what has come since the previous release of the event.
        first: nothing of it was released before.
        complete: it is finished, and everything before it has been released: it may be committed.
    """

    seqno: Seqno
    epoch: Epoch
    header: FragmentHeader
    bodies: list[B]
    first: bool
    complete: bool


@dataclass(frozen=True, slots=True)
class Voided:
    """An event that was released in part was given up: forget the parts. Its seqno comes again."""

    seqno: Seqno


class EventSequencer(Generic[B, R]):
    """The events of one run of an applier, from its target's position on.

    After any error the ledger is of no use: read again from the target's position.

    Args:
        topic: for messages.
        partitions: how many the log has.
        position: the target's, as the run found it.
        history: the log's, read after the target was claimed; the target was proved to lie on it.
    """

    def __init__(
        self, *, topic: str, partitions: int, position: TargetPosition, history: History | None = None
    ) -> None:
        self._topic = topic
        self._applied = position.seqno
        self._next = Seqno(position.seqno + 1)
        self._epoch = position.epoch
        self._resumed = position.seqno
        self._head = position.head
        self._barrier: Seqno | None = None
        self._log_id: LogId = history.log_id if history else position.log_id
        self._exact: dict[Epoch, Seqno] = {r.epoch: r.first_seqno for r in history.epochs} if history else {}
        self._firsts: dict[Epoch, Seqno] = dict(self._exact)  # exact, or an upper bound
        self._forks: set[Epoch] = {r.epoch for r in history.epochs if r.forked} if history else set()
        self._trapped: tuple[Range, ...] = history.trapped if history else ()
        self._events: dict[Seqno, UnfinishedEvent[B]] = {}
        self._ready: list[Release[B] | EventRange[R] | Voided] = []
        self._chains: list[PartitionState[B]] = [
            PartitionState(p, position.offsets.get(p, 0), p in position.offsets) for p in range(partitions)
        ]

    @property
    def released(self) -> Seqno:
        """The last event that was finished with everything before it; `release` has given it or is about to."""
        return Seqno(self._next - 1)

    @property
    def waiting(self) -> int:
        """Fragments that are held until an event before theirs has come: with one partition always 0."""
        return sum(len(e.bodies) for e in self._events.values() if e.seqno != self._next)

    @property
    def partitions(self) -> int:
        """How many the log has."""
        return len(self._chains)

    def ahead(self, partition: int) -> bool:
        """Whether a partition has given an event that waits for one before it: that one is in another partition.

        A partition's events ascend; and what a producer gave up is the event that its successor begins with, so what
        comes before that is not behind it either.
        """
        chain = self._chains[partition]
        if chain.seqno != NO_SEQNO:
            return chain.seqno > self._next
        return chain.tail is not None and chain.tail >= self._next

    def take(self, header: FragmentHeader, partition: int, offset: int, body: B) -> None:
        """Take the next message of a partition.

        Args:
            header: the fragment's.
            partition: where it was read.
            offset: its place there; ascending, with the gaps that Kafka's transaction markers leave.
            body: whatever is to be released with it.

        Raises:
            LogDamaged: something is missing before it, or it cannot be there by the protocol.
            HistoriesDiffer: the topic holds another log than the one the run began with.
        """
        chain = self._chains[partition]
        if offset < chain.next_offset:
            self._damaged(chain, offset, header, "The partition was read again from an earlier offset")
        chain.next_offset = offset + 1
        chain.seen = True
        if header.kind is Kind.EPOCH:
            self._marker(chain, offset, header)
            return
        if header.epoch != chain.epoch:
            self._enter(chain, offset, header)
        if chain.seqno != NO_SEQNO or header.fragno:
            self._continue(chain, offset, header, body)
        else:
            self._begin(chain, offset, header, body)

    def take_run(self, run: EventRange[R]) -> bool:
        """Do for a run what `take` does for each of its events, where they simply come next.

        Returns:
            Whether they were taken. If not, nothing has changed, and `take` of the first one tells more.
        """
        chain, header = self._chains[run.partition], run.header
        barrier = newest_barrier(header)
        if (
            run.first != self._next
            or self._events
            or chain.seqno != NO_SEQNO
            or not self._epoch == chain.epoch == header.epoch
            or header.seqno >= chain.limit
            or run.offsets[0] < chain.next_offset
            or run.prev_seqno != chain.tail
            or run.last_barrier != self._barrier
            or (chain.partition and barrier != run.last_barrier)
            or (self._trapped and meets(self._trapped, run.first, header.seqno))
        ):
            return False
        chain.next_offset = run.offsets[-1] + 1
        chain.seen = True
        chain.starts.append((run.first, run.offsets))
        chain.tail = header.seqno
        self._barrier = barrier
        self._next = Seqno(header.seqno + 1)
        self._ready.append(run)
        return True

    def release(self) -> list[Release[B] | EventRange[R] | Voided]:
        """What may be taken now, in seqno order; each thing is given once. Every event of a run may be committed.

        The event after the last complete one is given in parts as its fragments come, so that nobody holds a large
        one whole; should it be given up, a `Voided` follows its parts.
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
        """Where to read on from, once everything up to and including `upto` is committed on the target.

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
        offsets = ((chain.partition, chain.resumable(upto)) for chain in self._chains)
        return {partition: offset for partition, offset in offsets if offset is not None}

    def _begin(self, chain: PartitionState[B], offset: int, header: FragmentHeader, body: B) -> None:
        seqno = header.seqno
        self._link(chain, offset, header)
        if seqno <= self._resumed or seqno >= chain.limit:
            if header.last_frag:
                self._pass_finished(chain, offset, header)
            else:
                chain.seqno, chain.fragno, chain.rows, chain.event = seqno, 1, header.rows, None
            return
        chain.starts.append((seqno, (offset,)))
        if seqno < self._next or seqno in self._events:
            self._damaged(chain, offset, header, "The log gives an event twice")
        if header.last_frag:
            chain.tail = seqno
            if seqno == self._next:
                self._complete(chain, header, [body], first=True)
                if self._events:
                    self._drain()
            else:
                self._events[seqno] = UnfinishedEvent(chain, seqno, header.epoch, header, [body], finished=True)
            return
        event = UnfinishedEvent(chain, seqno, header.epoch, header, [body])
        self._events[seqno] = event
        chain.seqno, chain.fragno, chain.rows, chain.event = seqno, 1, header.rows, event

    def _continue(self, chain: PartitionState[B], offset: int, header: FragmentHeader, body: B) -> None:
        seqno = header.seqno
        if chain.seqno == NO_SEQNO:  # a fragment that is not the first, without the one before it
            given_up = seqno <= self._resumed or seqno >= chain.limit
            if chain.tail is not None or not given_up:
                self._damaged(chain, offset, header, "A fragment is missing before this one")
            self._link(chain, offset, header)
            chain.seqno, chain.fragno, chain.rows = seqno, header.fragno, header.rows
        elif wrong := interrupted(header, chain.seqno, chain.fragno, chain.rows, chain.tail):
            self._damaged(chain, offset, header, wrong)
        chain.fragno += 1
        chain.rows = header.rows
        event = chain.event
        if event is not None:
            event.header = header
            event.bodies.append(body)
        if not header.last_frag:
            return
        chain.close()
        if event is None:
            self._pass_finished(chain, offset, header)
            return
        chain.tail = seqno
        event.finished = True
        self._drain()

    def _marker(self, chain: PartitionState[B], offset: int, header: FragmentHeader) -> None:
        """A producer went online: what was unfinished here is given up."""
        epoch, first = header.epoch, header.seqno
        self._log_id = log_of(header, self._log_id, self._at(chain, offset))
        self._link(chain, offset, header)
        if wrong := unexpected(header, chain.epoch):
            self._damaged(chain, offset, header, wrong)
        if chain.seqno != NO_SEQNO and chain.starts and chain.starts[-1][0] == chain.seqno:
            chain.starts.pop()
        if NO_SEQNO < chain.seqno < first:
            self._damaged(chain, offset, header, f"Event {chain.seqno} was finished before, but not here")
        if first != self._exact.setdefault(epoch, first):
            self._damaged(chain, offset, header, f"The epoch began with {self._exact[epoch]} as read before")
        if epoch > self._epoch and first < self._next:
            self._damaged(chain, offset, header, f"The epoch gives events again, but {self.released} was finished")
        if TRAPPED_EVENTS in header.metadata and epoch not in self._forks:
            self._fork(chain, offset, header)
        self._learn(chain, offset, header, first)
        chain.close()
        chain.epoch = epoch
        chain.limit = self._limit(epoch)

    def _fork(self, chain: PartitionState[B], offset: int, header: FragmentHeader) -> None:
        """A producer goes on without trapped events: what came of them is void.

        A target that was taken back holds more than was released: all up to its head.
        """
        held = max(self.released, self._head) if header.seqno > self._head else self.released
        self._trapped += trapped_by(
            header,
            held if header.epoch > self._epoch else NO_SEQNO,
            self._at(chain, offset),
            message="The source's successor lacks events that were already taken",
            hint="fill the target again from nothing",
        )
        self._forks.add(header.epoch)
        for event in self._events.values():
            if event.parts and self._is_trapped(event.seqno):
                event.parts = False
                self._ready.append(Voided(event.seqno))

    def _is_trapped(self, seqno: Seqno) -> bool:
        return bool(self._trapped) and meets(self._trapped, seqno, seqno)

    def _enter(self, chain: PartitionState[B], offset: int, header: FragmentHeader) -> None:
        """A partition's epoch changes without a marker: only right for the first thing read of it."""
        if wrong := unannounced(header, chain.epoch):
            self._damaged(chain, offset, header, wrong)
        if header.seqno < self._firsts.get(header.epoch, NO_LIMIT):
            self._learn(chain, offset, header, header.seqno)
        chain.epoch = header.epoch
        chain.limit = self._limit(header.epoch)

    def _learn(self, chain: PartitionState[B], offset: int, header: FragmentHeader, first: Seqno) -> None:
        """An epoch's first seqno is at most `first`: what older epochs gave from there on is given up."""
        epoch = header.epoch
        self._firsts[epoch] = min(first, self._firsts.get(epoch, first))
        for other in self._chains:
            if other.epoch < epoch:
                other.limit = min(other.limit, first)
                if other.event is not None and other.seqno >= first:
                    other.event = None
        for event in [e for e in self._events.values() if e.epoch < epoch and e.seqno >= first]:
            if event.finished:
                self._damaged(chain, offset, header, f"The epoch gives event {event.seqno} again, which was finished")
            del self._events[event.seqno]
            if event.parts:
                self._ready.append(Voided(event.seqno))

    def _limit(self, epoch: Epoch) -> Seqno:
        return min((first for other, first in self._firsts.items() if other > epoch), default=NO_LIMIT)

    def _link(self, chain: PartitionState[B], offset: int, header: FragmentHeader) -> None:
        """Check that nothing of the partition is missing before this event or marker."""
        # Every event that the target lacks stands at or after the offset where we began.
        if wrong := unlinked(header, chain.tail, self._resumed):
            self._damaged(chain, offset, header, wrong)
        if chain.tail is None:
            chain.tail = header.prev_seqno

    def _pass_finished(self, chain: PartitionState[B], offset: int, header: FragmentHeader) -> None:
        """An event that is not wanted ends: right when the target has it, wrong when a newer epoch gives it again."""
        if header.seqno >= chain.limit:
            self._damaged(chain, offset, header, "The event is finished, but a newer epoch gives it again")
        chain.tail = header.seqno

    def _complete(self, chain: PartitionState[B], header: FragmentHeader, bodies: list[B], *, first: bool) -> None:
        """The next event is finished: release it, or pass over it."""
        seqno = header.seqno
        if header.epoch != self._epoch:
            self._change(chain, header)
        barrier = self._barrier
        if header.last_barrier != barrier and (barrier is not None or header.last_barrier > self._resumed):
            self._damaged(chain, None, header, f"The last barrier read is {barrier}")
        if header.barrier and chain.partition:
            self._damaged(chain, None, header, "A barrier outside partition 0: who reads one shard misses it")
        self._barrier = newest_barrier(header)
        if not self._is_trapped(seqno):
            self._ready.append(Release(seqno, header.epoch, header, bodies, first, complete=True))
        self._next = Seqno(seqno + 1)

    def _change(self, chain: PartitionState[B], header: FragmentHeader) -> None:
        """The next event is of another epoch than the one before it."""
        if header.epoch < self._epoch:
            self._damaged(chain, None, header, f"The event before it is of epoch {self._epoch}")
        if header.seqno < self._exact.get(header.epoch, 0):
            self._damaged(chain, None, header, f"Its epoch begins with {self._exact[header.epoch]}")
        self._epoch = header.epoch

    def _drain(self) -> None:
        events = self._events
        while (event := events.get(self._next)) is not None and event.finished:
            del events[event.seqno]
            self._complete(event.chain, event.header, event.bodies, first=not event.parts)

    def _damaged(self, chain: PartitionState[B], offset: int | None, header: FragmentHeader, message: str) -> NoReturn:
        raise damaged(message, self._at(chain, offset), header)

    def _at(self, chain: PartitionState[B], offset: int | None) -> str:
        return f"{self._topic}-{chain.partition}" + ("" if offset is None else f"@{offset}")
