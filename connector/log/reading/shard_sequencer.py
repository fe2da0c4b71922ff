"""Releases the events of some shards: some partitions of a log, joined by its barriers.

`EventSequencer` releases every event by its seqno and needs every partition. This class reads partition 0 and those of
some shards. Within a partition nothing can be missing, because every fragment names the event before it. Between
partitions only barriers define the order, and they are all in partition 0: an event is released after the last barrier
that it names, and a barrier when no partition can still have an event before it. A partition has none once a later
message of it was read, or once its reader calls `reached`: it read to an end that the partition had after the barrier
was read.

Shards are named by a rule, and by another one from the first event of the next partition-map version on. The names that
are asked for are those of one version: after its end nothing is released.

A partition that loses its tail while it is read (an unclean election) is noticed when it continues, not when a barrier
is released past it. Its reader compares it with the producer's position when it begins, when it ends, and after
waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from connector.errors import ShardsChanged
from connector.log.epochs.fork import TRAPPED_EVENTS, overlaps
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.format.shard_rule import SINCE, VERSION
from connector.log.ids import NO_SEQNO, Kind, LogId, Seqno, ShardId
from connector.log.reading.event_sequencer import Release
from connector.log.reading.fragment_rules import trapped_by
from connector.log.reading.partition_state import PartitionState
from connector.log.rules import Rule

B = TypeVar("B")


@dataclass(slots=True)
class ShardEvent(Generic[B]):
    """An event that is read in part or whole.

    Args:
        start: the offset of its fragment 0.
        header: the header of its newest fragment.
    """

    start: int
    header: FragmentHeader
    bodies: list[B]


@dataclass(slots=True)
class ShardPartition(Generic[B]):
    """The state of one partition.

    Args:
        state: the order of its fragments.
        read_to: no event before this seqno can come any more.
        open: the unfinished event.
        waiting: finished events that are not released yet.
    """

    state: PartitionState
    read_to: Seqno = NO_SEQNO
    open: ShardEvent[B] | None = None
    waiting: deque[ShardEvent[B]] = field(default_factory=deque)


class ShardSequencer(Generic[B]):
    """Releases the events of some shards, and all barriers.

    Args:
        topic: named in errors.
        log_id: the id of the log.
        shards: the shards whose events are released, beside barriers.
        offsets: partition → the offset to read from; partition 0 is among them.
        floor: events up to this one are not released.
        tails: partition → the last event before its offset, NO_SEQNO if none; absent where it is not known.
        barrier: the last released barrier; None: it is the last one up to `floor`, which is not known.
        history: the history of the log; None: only the markers name trapped events.
        version: the partition-map version whose rule names the shards.
    """

    def __init__(
        self,
        *,
        topic: str,
        log_id: LogId,
        shards: Collection[ShardId],
        offsets: Mapping[int, int],
        floor: Seqno = NO_SEQNO,
        tails: Mapping[int, Seqno] | None = None,
        barrier: Seqno | None = None,
        history: History | None = None,
        version: int = 1,
    ) -> None:
        self._version = version
        self._log_id = log_id
        self._shards = frozenset(shards)
        self._floor = floor
        self._barrier = barrier
        self._released = floor
        self._forks = {record.epoch for record in history.epochs if record.forked} if history else set()
        self._trapped = history.trapped if history else ()
        self._until: Seqno | None = None  # the first event of the next partition-map version
        known = tails or {}
        self._partitions = {
            p: ShardPartition[B](PartitionState(topic, p, offset, floor, known.get(p)))
            for p, offset in sorted(offsets.items())
        }

    @property
    def barrier(self) -> Seqno | None:
        """The last barrier that was released; None: none yet, and the one before the first event is not known."""
        return self._barrier

    def accept(self, header: FragmentHeader, partition: int, offset: int, body: B) -> None:
        """Accept the next message of a partition.

        Raises:
            LogDamaged: something is missing before it, or it cannot be there by the protocol.
            HistoriesDiffer: the topic holds another log.
        """
        read = self._partitions[partition]
        if header.kind is Kind.EPOCH:
            self._marker(read, offset, header)
        else:
            self._fragment(read, offset, header, body)
        read.read_to = max(read.read_to, header.seqno)

    def next(self) -> Release[B] | None:
        """Release the next event, None if there is none now: of several the one with the smallest seqno.

        Raises:
            ShardsChanged: from the next event on shards have other names.
        """
        while (best := self._best()) is not None:
            if self._until is not None and best.waiting[0].header.seqno >= self._until:
                raise ShardsChanged(
                    "Shards are named by another rule from this event on",
                    hint="read on from this event (start) with the names that shards have now, or the whole log",
                    seqno=self._until,
                    shards=", ".join(sorted(self._shards)),
                )
            event = best.waiting.popleft()
            header = event.header
            if header.barrier:
                self._barrier = header.seqno
            if overlaps(self._trapped, header.seqno, header.seqno):
                continue  # it counts for the order alone
            self._released = max(self._released, header.seqno)
            return Release(header.seqno, header.epoch, header, event.bodies, first=True, complete=True)
        return None

    def resume_point(self) -> tuple[dict[int, int], dict[int, Seqno]]:
        """Return where to resume after the released events: partition → offset, and → the last event before it."""
        offsets, tails = {}, {}
        for number, read in self._partitions.items():
            first = read.waiting[0] if read.waiting else read.open
            offsets[number] = first.start if first else read.state.next_offset
            if first is not None:
                tails[number] = first.header.prev_seqno
            elif read.state.tail is not None:
                tails[number] = read.state.tail
        return offsets, tails

    def lagging(self) -> tuple[Seqno, list[int]]:
        """Return the barrier that waits to be released, and the partitions that may still have an event before it.

        Call `reached` for each of them that has none, unless it continues by itself.
        """
        first = self._partitions[0].waiting
        if not first or not first[0].header.barrier:
            return NO_SEQNO, []
        seqno = first[0].header.seqno
        return seqno, [number for number, read in self._partitions.items() if read.read_to < seqno]

    def reached(self, partition: int, seqno: Seqno) -> None:
        """Note that a partition has nothing more before an event: see the module."""
        read = self._partitions[partition]
        read.read_to = max(read.read_to, seqno)

    def waiting_bodies(self, partition: int) -> Iterator[B]:
        """Return the newest body of each event of a partition that waits for another partition."""
        for event in self._partitions[partition].waiting:
            yield event.bodies[-1]

    def _best(self) -> ShardPartition[B] | None:
        best = None
        for read in self._partitions.values():
            if not read.waiting or not self._ready(read, read.waiting[0]):
                continue
            if best is None or read.waiting[0].header.seqno < best.waiting[0].header.seqno:
                best = read
        return best

    def _fragment(self, read: ShardPartition[B], offset: int, header: FragmentHeader, body: B) -> None:
        state, event = read.state, read.open
        state.enter(header, offset)
        if state.fragment(header, offset) or event is None:
            event = read.open = ShardEvent(offset, header, [body])
        else:
            event.header = header
            event.bodies.append(body)
        if header.seqno <= self._floor or not (header.barrier or header.shard in self._shards):
            event.bodies.clear()
        if header.last_frag:
            read.open = None
            if event.bodies:
                read.waiting.append(event)

    def _marker(self, read: ShardPartition[B], offset: int, header: FragmentHeader) -> None:
        read.state.marker(header, offset, self._log_id)
        read.state.check_finished(header, offset)
        if TRAPPED_EVENTS in header.metadata and header.epoch not in self._forks:
            self._fork(read, offset, header)
        if int(header.metadata.get(VERSION, 1)) > self._version:
            since = Seqno(int(header.metadata[SINCE]))
            self._until = since if self._until is None else min(self._until, since)
        read.open = None
        read.state.begin(header.epoch)

    def _fork(self, read: ShardPartition[B], offset: int, header: FragmentHeader) -> None:
        """A producer goes on without trapped events."""
        self._trapped += trapped_by(
            header,
            self._released,
            read.state.at(offset),
            hint="read the shards again from nothing",
        )
        self._forks.add(header.epoch)

    def _ready(self, read: ShardPartition[B], event: ShardEvent[B]) -> bool:
        """Return whether the first waiting event of its partition may be released."""
        header = event.header
        given = self._floor if self._barrier is None else self._barrier
        if header.last_barrier > given:
            first = self._partitions[0].waiting
            if first and first[0].header.seqno > header.last_barrier:
                read.state.damaged(header, event.start, Rule.BARRIER_MISSING, barrier_read=given)
            return False
        if self._barrier is not None and header.last_barrier != self._barrier:
            read.state.damaged(header, event.start, Rule.BARRIER_NOT_NAMED, barrier_read=self._barrier)
        if not header.barrier:
            return True
        if read.state.partition:
            read.state.damaged(header, event.start, Rule.BARRIER_ELSEWHERE)
        return all(other.read_to >= header.seqno for other in self._partitions.values())
