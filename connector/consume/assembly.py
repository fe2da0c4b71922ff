"""Messages in, whole events out: what the protocol's rules decide, carried out."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, Never, Protocol

from connector.consume.decoding import Decoder
from connector.consume.event import Event
from connector.consume.fragments import Fragments
from connector.consume.position import ConsumerPosition
from connector.log.format.header import FragmentHeader
from connector.log.ids import Epoch, Kind, LogId, Seqno
from connector.log.reading.event_sequencer import EventSequencer, Release
from connector.log.reading.shard_sequencer import ShardSequencer


class Message(NamedTuple):
    """A committed message of the event topic."""

    partition: int
    offset: int
    value: bytes


class Order(Protocol):
    """In which order finished events are given, and which are."""

    def wants(self, header: FragmentHeader) -> bool:
        """Whether an event's bytes are to be kept."""

    def take(self, header: FragmentHeader, partition: int, offset: int, fragments: Fragments) -> None:
        """Take the next message of a partition; all of an event come with the same `fragments`.

        Raises:
            LogDamaged: something is missing before it, or it cannot be there by the protocol.
            HistoriesDiffer: the topic holds another log.
        """

    def next(self) -> tuple[FragmentHeader, Fragments, ConsumerPosition] | None:
        """The next event that may be given, and the place behind it; None if there is none now."""

    def ahead(self, limit: int) -> Collection[int]:
        """Partitions of which more than so many bytes wait for another one: they are to be read no further now."""


class WholeLog:
    """All events, by their numbers.

    Args:
        ledger: of every partition.
        service, log_id: for positions.
    """

    def __init__(self, ledger: EventSequencer[Fragments, Never], service: str, log_id: LogId) -> None:
        self._ledger = ledger
        self._service = service
        self._log_id = log_id
        self._ready: deque[Release[Fragments]] = deque()
        self._waiting: dict[int, deque[tuple[Seqno, int]]] = {}

    def wants(self, header: FragmentHeader) -> bool:
        """As `Order`."""
        return header.kind is not Kind.EPOCH

    def take(self, header: FragmentHeader, partition: int, offset: int, fragments: Fragments) -> None:
        """As `Order`."""
        self._ledger.take(header, partition, offset, fragments)
        for item in self._ledger.release():
            # Parts of an event that is not complete, and that they are void, matter to nobody: nothing is given yet.
            if isinstance(item, Release) and item.complete:
                self._ready.append(item)
        if header.seqno > self._ledger.released and header.kind is not Kind.EPOCH:
            waiting = self._waiting.setdefault(partition, deque())
            if waiting and waiting[-1][0] == header.seqno:
                waiting.pop()
            waiting.append((header.seqno, fragments.size))

    def next(self) -> tuple[FragmentHeader, Fragments, ConsumerPosition] | None:
        """As `Order`."""
        if not self._ready:
            return None
        item = self._ready.popleft()
        position = ConsumerPosition(
            service=self._service,
            log_id=self._log_id,
            seqno=item.seqno,
            epoch=item.epoch,
            offsets=self._ledger.resumable(item.seqno),
        )
        return item.header, item.bodies[-1], position

    def ahead(self, limit: int) -> Collection[int]:
        """One that holds what comes next is never among them, so reading always goes on."""
        coming = self._ledger.released + 1
        full = []
        for partition, waiting in self._waiting.items():
            while waiting and waiting[0][0] < coming:
                waiting.popleft()
            if self._ledger.ahead(partition) and sum(size for _, size in waiting) > limit:
                full.append(partition)
        return full


class SomeShards:
    """The events of some shards, and all barriers.

    Args:
        joined: of partition 0 and those of the shards.
        begin: the place where it begins.
    """

    def __init__(
        self,
        joined: ShardSequencer[Fragments],
        begin: ConsumerPosition,
    ) -> None:
        self._joined = joined
        self._begin = begin
        self._shards = frozenset(begin.shards or ())
        self._epochs: dict[int, deque[tuple[Seqno, Epoch]]] = {}
        self._behind = (begin.seqno, begin.epoch)
        self._partitions: set[int] = set()

    def wants(self, header: FragmentHeader) -> bool:
        """As `Order`."""
        return header.kind is not Kind.EPOCH and (header.barrier or header.shard in self._shards)

    def take(self, header: FragmentHeader, partition: int, offset: int, fragments: Fragments) -> None:
        """As `Order`."""
        self._joined.take(header, partition, offset, fragments)
        self._partitions.add(partition)
        if header.last_frag and header.kind is not Kind.EPOCH:
            self._epochs.setdefault(partition, deque()).append((header.seqno, header.epoch))

    def next(self) -> tuple[FragmentHeader, Fragments, ConsumerPosition] | None:
        """As `Order`."""
        item = self._joined.next()
        if item is None:
            return None
        offsets, tails = self._joined.place()
        self._pass(tails)
        seqno, epoch = self._behind
        barrier = self._joined.barrier
        position = replace(self._begin, seqno=seqno, epoch=epoch, offsets=offsets, tails=tails, barrier=barrier)
        return item.header, item.bodies[-1], position

    def ahead(self, limit: int) -> Collection[int]:
        """What a partition waits for is never in one that itself waits: barriers are given in order."""
        return [p for p in self._partitions if sum(each.size for each in self._joined.held(p)) > limit]

    def _pass(self, tails: Mapping[int, Seqno]) -> None:
        """The last event behind a place is of the newest epoch there; its seqno and epoch prove the place."""
        for partition, tail in tails.items():
            met = self._epochs.get(partition, deque())
            while met and met[0][0] <= tail:
                self._behind = max(self._behind, met.popleft())


class Assembly:
    """One reading of the log.

    Args:
        order: which events, and when.
        decoder: of its messages.
        topic: for messages.
        memory: bytes of an event that are held in memory.
    """

    def __init__(self, order: Order, decoder: Decoder, topic: str, memory: int) -> None:
        self._order = order
        self._decoder = decoder
        self._topic = topic
        self._memory = memory
        self._begun: dict[int, Fragments] = {}

    def take(self, message: Message) -> Iterator[Event]:
        """Take the next message of a partition, and give what may be given now.

        Raises:
            LogDamaged, HistoriesDiffer, Unsupported: the log cannot be read on; read again from the last position.
        """
        partition, offset, value = message
        header = self._decoder.header(value, f"{self._topic}-{partition}@{offset}")
        fragments = self._begun.get(partition)
        if fragments is None or header.fragno == 0:
            fragments = self._begun[partition] = Fragments(partition, offset, self._memory)
        if self._order.wants(header):
            fragments.add(value)
        self._order.take(header, partition, offset, fragments)
        return self.ready()

    def ready(self) -> Iterator[Event]:
        """What may be given now."""
        while (found := self._order.next()) is not None:
            header, fragments, position = found
            yield Event(header, position, self._topic, fragments, self._decoder)
