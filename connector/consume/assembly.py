"""Turns messages into whole events, in the order that `connector.log.reading` decides."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, Never, Protocol

from connector.consume.decoding import MessageDecoder
from connector.consume.event import Event
from connector.consume.fragments import Fragments
from connector.consume.position import ConsumerPosition
from connector.errors import LogDamaged
from connector.log.format.header import FragmentHeader
from connector.log.ids import Epoch, Kind, LogId, Seqno
from connector.log.reading.event_sequencer import EventSequencer, Release
from connector.log.reading.shard_sequencer import ShardSequencer
from connector.log.rules import Rule, broken


class ConsumedMessage(NamedTuple):
    """A committed message of the event topic."""

    partition: int
    offset: int
    value: bytes


Attempts = Callable[[FragmentHeader, Fragments, bool], None]
"""Receives an attempt at an event: the newest header, the messages, and True if the last fragment is among them."""


class Order(Protocol):
    """The order in which finished events are released, and the choice of events."""

    def includes(self, header: FragmentHeader) -> bool:
        """True if the event's bytes must be kept."""

    def accept(self, header: FragmentHeader, partition: int, offset: int, fragments: Fragments) -> None:
        """Accept the next message of a partition; all messages of an event come with the same `fragments`.

        Raises:
            LogDamaged: something is missing before it, or the protocol forbids it there.
            HistoriesDiffer: the topic holds another log.
        """

    def next(self) -> tuple[FragmentHeader, Fragments, ConsumerPosition] | None:
        """The next event and the position after it; None while there is none."""

    def ahead(self, limit: int) -> Collection[int]:
        """Partitions to pause: more than `limit` bytes of each wait for an event of another partition.

        Raises:
            LogDamaged: no partition can have the event that comes next.
        """

    @property
    def released(self) -> Seqno:
        """The last event that was released, or passed over because it is trapped."""


class WholeLog:
    """All events, by seqno.

    Args:
        sequencer: the sequencer of all partitions.
        service, log_id: service and log ID of the positions.
    """

    def __init__(self, sequencer: EventSequencer[Fragments, Never], service: str, log_id: LogId) -> None:
        self._sequencer = sequencer
        self._service = service
        self._log_id = log_id
        self._ready: deque[Release[Fragments]] = deque()
        self._waiting: dict[int, deque[tuple[Seqno, int]]] = {}

    def includes(self, header: FragmentHeader) -> bool:
        """See `Order`."""
        return header.kind is not Kind.EPOCH

    def accept(self, header: FragmentHeader, partition: int, offset: int, fragments: Fragments) -> None:
        """See `Order`."""
        self._sequencer.accept(header, partition, offset, fragments)
        for item in self._sequencer.release():
            # Parts of an unfinished event, and their withdrawal, are ignored: nothing of it was returned.
            if isinstance(item, Release) and item.complete:
                self._ready.append(item)
        if header.seqno > self._sequencer.released and header.kind is not Kind.EPOCH:
            waiting = self._waiting.setdefault(partition, deque())
            if waiting and waiting[-1][0] == header.seqno:
                waiting.pop()
            waiting.append((header.seqno, fragments.size))

    def next(self) -> tuple[FragmentHeader, Fragments, ConsumerPosition] | None:
        """See `Order`."""
        if not self._ready:
            return None
        item = self._ready.popleft()
        position = ConsumerPosition(
            service=self._service,
            log_id=self._log_id,
            seqno=item.seqno,
            epoch=item.epoch,
            offsets=self._sequencer.resumable(item.seqno),
        )
        return item.header, item.bodies[-1], position

    def ahead(self, limit: int) -> Collection[int]:
        """See `Order`. A partition that can have the next event is never paused, so reading always continues."""
        coming = Seqno(self.released + 1)
        ahead = [p for p in range(self._sequencer.partitions) if self._sequencer.ahead(p)]
        if len(ahead) == self._sequencer.partitions:
            raise broken(LogDamaged, Rule.EVENT_MISSING, seqno=coming)
        full = []
        for partition, waiting in self._waiting.items():
            while waiting and waiting[0][0] < coming:
                waiting.popleft()
            if partition in ahead and sum(size for _, size in waiting) > limit:
                full.append(partition)
        return full

    @property
    def released(self) -> Seqno:
        """See `Order`."""
        return self._sequencer.released


class SomeShards:
    """The events of some shards, and all barriers.

    Args:
        sequencer: the sequencer of partition 0 and the shards' partitions.
        begin: the position to begin at.
    """

    def __init__(self, sequencer: ShardSequencer[Fragments], begin: ConsumerPosition) -> None:
        self._sequencer = sequencer
        self._begin = begin
        self._shards = frozenset(begin.shards or ())
        self._epochs: dict[int, deque[tuple[Seqno, Epoch]]] = {}
        self._last = (begin.seqno, begin.epoch)  # the last event before the position
        self._partitions: set[int] = set()

    def includes(self, header: FragmentHeader) -> bool:
        """See `Order`."""
        return header.kind is not Kind.EPOCH and (header.barrier or header.shard in self._shards)

    def accept(self, header: FragmentHeader, partition: int, offset: int, fragments: Fragments) -> None:
        """See `Order`."""
        self._sequencer.accept(header, partition, offset, fragments)
        self._partitions.add(partition)
        if header.finishes:
            self._epochs.setdefault(partition, deque()).append((header.seqno, header.epoch))

    def next(self) -> tuple[FragmentHeader, Fragments, ConsumerPosition] | None:
        """See `Order`."""
        item = self._sequencer.next()
        if item is None:
            return None
        offsets, tails = self._sequencer.resume_point()
        self._pass(tails)
        seqno, epoch = self._last
        barrier = self._sequencer.barrier
        position = replace(self._begin, seqno=seqno, epoch=epoch, offsets=offsets, tails=tails, barrier=barrier)
        return item.header, item.bodies[-1], position

    def ahead(self, limit: int) -> Collection[int]:
        """See `Order`. A partition never waits for one that itself waits: barriers are released in order."""
        return [p for p in self._partitions if sum(each.size for each in self._sequencer.waiting_bodies(p)) > limit]

    @property
    def released(self) -> Seqno:
        """See `Order`."""
        return self._last[0]

    def _pass(self, tails: Mapping[int, Seqno]) -> None:
        """Move the last event to the partitions' tails: its seqno and epoch prove the position."""
        for partition, tail in tails.items():
            ended = self._epochs.get(partition, deque())
            while ended and ended[0][0] <= tail:
                self._last = max(self._last, ended.popleft())


class Assembly:
    """Turns the messages of the partitions into whole events.

    Args:
        order: decides which events are returned, and when.
        decoder: decodes the messages.
        topic: the event topic, for errors.
        memory: bytes of an event that are held in memory.
        attempts: called with every attempt at an event that has ended.
    """

    def __init__(
        self, order: Order, decoder: MessageDecoder, topic: str, memory: int, attempts: Attempts | None = None
    ) -> None:
        self._order = order
        self._decoder = decoder
        self._topic = topic
        self._memory = memory
        self._attempts = attempts
        self._fragments: dict[int, Fragments] = {}
        self._unfinished: dict[int, FragmentHeader] = {}

    def accept(self, message: ConsumedMessage) -> Iterator[Event]:
        """Accept the next message of a partition, and return the events that may be returned now.

        Raises:
            LogDamaged, HistoriesDiffer, Unsupported: the log cannot be read on; read again from the last position.
        """
        partition, offset, value = message
        header = self._decoder.header(value, f"{self._topic}-{partition}@{offset}")
        fragments = self._fragments.get(partition)
        if fragments is None or header.fragno == 0:
            self._end_attempt(partition)
            fragments = self._fragments[partition] = Fragments(partition, offset, self._memory)
        if self._order.includes(header):
            fragments.add(value, offset)
        self._order.accept(header, partition, offset, fragments)
        if self._attempts is not None and header.kind is not Kind.EPOCH:
            self._unfinished[partition] = header
            if header.last_frag:
                self._end_attempt(partition, whole=True)
        return self.ready()

    def ready(self) -> Iterator[Event]:
        """The events that may be returned now."""
        while (found := self._order.next()) is not None:
            header, fragments, position = found
            yield Event(header, position, self._topic, fragments, self._decoder)

    def _end_attempt(self, partition: int, *, whole: bool = False) -> None:
        header = self._unfinished.pop(partition, None)
        if header is not None and self._attempts is not None:
            self._attempts(header, self._fragments[partition], whole)
