"""Some partitions of a log, joined by its barriers: what one reads who wants some shards alone.

The ledger gives every event by its number, for which it needs every partition. Here partition 0 and those of the wanted
shards are read. Within a partition nothing can be missing, because every fragment names the event before it. Between
partitions only barriers tell the order, and they are all in partition 0: an event is given when the last barrier that
it names has been given, and a barrier when nothing before it can still come from any of the partitions. That a
partition has nothing more before a barrier shows when it goes on behind it; or its reader finds it read to the end that
it had when the barrier was met already, and says so.

Shards have their names by a rule, and by another one from the first event of a generation on. Who wants some by name
wants those of one generation: beyond its end nothing is given.

So a partition that loses its tail while it is read (an unclean election) is noticed here when it goes on, not when a
barrier is given past it; its reader compares it with the producer's position where it begins, ends, or waits in vain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from connector.errors import ShardsChanged
from connector.log.format.header import FragmentHeader
from connector.log.format.partition_map import GENERATION, SINCE
from connector.log.ids import NO_SEQNO, Kind, LogId, Seqno, ShardId
from connector.log.reading.event_sequencer import Release
from connector.log.reading.fragment_rules import trapped_by
from connector.log.reading.partition_state import PartitionState
from connector.log.writing.fork import TRAPPED_EVENTS, meets
from connector.log.writing.history import History

B = TypeVar("B")


@dataclass(slots=True)
class ShardEvent(Generic[B]):
    """An event of which fragments have come, or all.

    Args:
        start: the offset of its fragment 0.
        header: of its newest fragment.
    """

    start: int
    header: FragmentHeader
    bodies: list[B]


@dataclass(slots=True)
class ShardPartition(Generic[B]):
    """One of the partitions.

    Args:
        state: the order of its fragments.
        met: nothing below it can come any more.
        open: the unfinished event.
        waiting: finished events that have not been given.
    """

    state: PartitionState
    met: Seqno = NO_SEQNO
    open: ShardEvent[B] | None = None
    waiting: deque[ShardEvent[B]] = field(default_factory=deque)


class ShardSequencer(Generic[B]):
    """The events of some shards, and all barriers.

    Args:
        topic: for messages.
        log_id: the log's.
        shards: which events are wanted beside barriers.
        offsets: partition → where it is read from; 0 is among them.
        floor: events up to this one are passed over.
        tails: partition → the last event before its offset; NO_SEQNO if none; left out where it is not known.
        barrier: the last one that was given; None: the last one up to `floor`, whichever that is.
        history: the log's; None: what is trapped is told by the markers alone.
        generation: of the partition map, by whose rule the shards have their names.
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
        generation: int = 1,
    ) -> None:
        self._generation = generation
        self._log_id = log_id
        self._shards = frozenset(shards)
        self._floor = floor
        self._barrier = barrier
        self._given = floor
        self._forks = {record.epoch for record in history.epochs if record.forked} if history else set()
        self._trapped = history.trapped if history else ()
        self._until: Seqno | None = None  # the first event of the generation behind that of the shards
        known = tails or {}
        self._strands = {
            p: ShardPartition[B](PartitionState(topic, p, offset, floor, known.get(p)))
            for p, offset in sorted(offsets.items())
        }

    @property
    def barrier(self) -> Seqno | None:
        """The last barrier that was given; None: none yet, and the one before the first event is not known."""
        return self._barrier

    def take(self, header: FragmentHeader, partition: int, offset: int, body: B) -> None:
        """Take the next message of a partition.

        Raises:
            LogDamaged: something is missing before it, or it cannot be there by the protocol.
            HistoriesDiffer: the topic holds another log.
        """
        strand = self._strands[partition]
        if header.kind is Kind.EPOCH:
            self._marker(strand, offset, header)
        else:
            self._fragment(strand, offset, header, body)
        strand.met = max(strand.met, header.seqno)

    def next(self) -> Release[B] | None:
        """The next event that may be given, None if there is none now: of several the one with the smallest seqno.

        Raises:
            ShardsChanged: from the next event on shards have other names.
        """
        while (best := self._best()) is not None:
            if self._until is not None and best.waiting[0].header.seqno >= self._until:
                raise ShardsChanged(
                    "Shards are made by another rule from this event on",
                    hint="read on from this event (start) with the names that shards have now, or the whole log",
                    seqno=self._until,
                    shards=", ".join(sorted(self._shards)),
                )
            event = best.waiting.popleft()
            header = event.header
            if header.barrier:
                self._barrier = header.seqno
            if meets(self._trapped, header.seqno, header.seqno):
                continue  # to the order it is there
            self._given = max(self._given, header.seqno)
            return Release(header.seqno, header.epoch, header, event.bodies, first=True, complete=True)
        return None

    def place(self) -> tuple[dict[int, int], dict[int, Seqno]]:
        """Return where to resume after the released events: partition → offset, and → the last event before it."""
        offsets, tails = {}, {}
        for number, strand in self._strands.items():
            first = strand.waiting[0] if strand.waiting else strand.open
            offsets[number] = first.start if first else strand.state.next_offset
            if first is not None:
                tails[number] = first.header.prev_seqno
            elif strand.state.tail is not None:
                tails[number] = strand.state.tail
        return offsets, tails

    def lagging(self) -> tuple[Seqno, list[int]]:
        """The barrier that waits to be given, and the partitions that may still have something before it.

        `reached` is to be told of each of them that has no more, unless it goes on by itself.
        """
        first = self._strands[0].waiting
        if not first or not first[0].header.barrier:
            return NO_SEQNO, []
        seqno = first[0].header.seqno
        return seqno, [number for number, strand in self._strands.items() if strand.met < seqno]

    def reached(self, partition: int, seqno: Seqno) -> None:
        """A partition has nothing more before an event: it was read to an end that it had after that event was met."""
        strand = self._strands[partition]
        strand.met = max(strand.met, seqno)

    def held(self, partition: int) -> Iterator[B]:
        """Of each event of a partition that waits for another partition its newest body."""
        for event in self._strands[partition].waiting:
            yield event.bodies[-1]

    def _best(self) -> ShardPartition[B] | None:
        best = None
        for strand in self._strands.values():
            if not strand.waiting or not self._ready(strand, strand.waiting[0]):
                continue
            if best is None or strand.waiting[0].header.seqno < best.waiting[0].header.seqno:
                best = strand
        return best

    def _fragment(self, strand: ShardPartition[B], offset: int, header: FragmentHeader, body: B) -> None:
        state, event = strand.state, strand.open
        state.enter(header, offset)
        if state.fragment(header, offset) or event is None:
            event = strand.open = ShardEvent(offset, header, [body])
        else:
            event.header = header
            event.bodies.append(body)
        if header.seqno <= self._floor or not (header.barrier or header.shard in self._shards):
            event.bodies.clear()
        if header.last_frag:
            strand.open = None
            if event.bodies:
                strand.waiting.append(event)

    def _marker(self, strand: ShardPartition[B], offset: int, header: FragmentHeader) -> None:
        strand.state.marker(header, offset, self._log_id)
        strand.state.check_finished(header, offset)
        if TRAPPED_EVENTS in header.metadata and header.epoch not in self._forks:
            self._fork(strand, offset, header)
        if int(header.metadata.get(GENERATION, 1)) > self._generation:
            since = Seqno(int(header.metadata[SINCE]))
            self._until = since if self._until is None else min(self._until, since)
        strand.open = None
        strand.state.begin(header.epoch)

    def _fork(self, strand: ShardPartition[B], offset: int, header: FragmentHeader) -> None:
        """A producer goes on without trapped events."""
        self._trapped += trapped_by(
            header,
            self._given,
            strand.state.at(offset),
            message="The source's successor lacks events that may have been taken",
            hint="read the shards again from nothing",
        )
        self._forks.add(header.epoch)

    def _ready(self, strand: ShardPartition[B], event: ShardEvent[B]) -> bool:
        """Return whether the first waiting event of its partition may be released."""
        header = event.header
        given = self._floor if self._barrier is None else self._barrier
        if header.last_barrier > given:
            first = self._strands[0].waiting
            if first and first[0].header.seqno > header.last_barrier:
                strand.state.damaged(header, event.start, f"A barrier is missing: the last one read is {given}")
            return False
        if self._barrier is not None and header.last_barrier != self._barrier:
            strand.state.damaged(header, event.start, f"The barrier {self._barrier} came before it")
        if not header.barrier:
            return True
        if strand.state.partition:
            strand.state.damaged(header, event.start, "A barrier outside partition 0: who reads one shard misses it")
        return all(other.met >= header.seqno for other in self._strands.values())
