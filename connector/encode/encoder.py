"""Pieces of transactions in, numbered fragments out.

An event is held back until it has ended, because only then its shard is known: one schema, or `#UNKNOWN`. One
that grows over `shard_bytes` before is `#UNKNOWN`, which is always safe, and leaves piece by piece. Whether
it does depends on its size alone, not on how it came in pieces. Kept between two calls are the held changes, or
one fragment's worth of them; numbers move when an event ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connector.encode import change as encoded
from connector.encode import primitive as avro
from connector.encode.cut import Group
from connector.encode.event import Event
from connector.encode.fragment import EventHead, FragmentWriter
from connector.encode.schema import single_object_header
from connector.errors import CorruptBinlog, Unsupported
from connector.thl.event_id import EventId
from connector.thl.fragment import Fragment
from connector.thl.header import FragmentHeader
from connector.thl.layout import TableLayout
from connector.thl.piece import Begin, Ending, Piece
from connector.thl.position import Finished
from connector.thl.shard import partition_of, shard_of
from connector.thl.words import NO_SEQNO, UNKNOWN_SHARD, Action, Epoch, Kind, Seqno, ShardId, is_barrier

KEPT_HEADS: Final = 4096
BATCH_OVERHEAD: Final = 512  # what Kafka's record batch adds to one message, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large things may be, in bytes; see `connector.config.Publish` and `Kafka`."""

    fragment: int
    shard: int
    message: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """Where numbering goes on: what going online, or going back, has decided.

    Args:
        epoch: the epoch of what follows.
        next_seqno: of the next event.
        tails: partition → its last finished event.
        last_barrier: the last finished barrier.
    """

    epoch: Epoch
    next_seqno: Seqno
    tails: Mapping[int, Seqno]
    last_barrier: Seqno


class Encoder:
    """Encodes one log's events.

    Args:
        service: whose log.
        source_id: the source's host:port.
        partitions: of the event topic.
        limits: sizes.
    """

    def __init__(self, *, service: str, source_id: str, partitions: int, limits: Limits) -> None:
        self._service = service
        self._partitions = partitions
        self._limits = limits
        self._writer = FragmentWriter(single_object_header(), source_id)
        self._heads: dict[tuple[int, Action], tuple[TableLayout, bytes]] = {}
        self._metadata: dict[tuple[int, ShardId], bytes] = {}
        self._event: Event | None = None
        self._epoch = Epoch(0)
        self._next = Seqno(0)
        self._tails: dict[int, Seqno] = {}
        self._last_barrier = NO_SEQNO

    @property
    def open(self) -> bool:
        """Whether an event has begun and not ended."""
        return self._event is not None

    def begin(self, numbering: Numbering) -> None:
        """Number from here on like this; an event that has not ended is forgotten."""
        self._event = None
        self._epoch = numbering.epoch
        self._next = numbering.next_seqno
        self._tails = dict(numbering.tails)
        self._last_barrier = numbering.last_barrier

    def take(self, piece: Piece) -> list[Fragment]:
        """Encode a piece.

        Args:
            piece: the next of the source. Its rows may not change afterwards.

        Returns:
            The fragments that are ready, perhaps none. The last has `finished` set when the piece ended the event.

        Raises:
            CorruptBinlog: pieces that do not follow each other.
            Unsupported: a row larger than a Kafka message may be.
        """
        event = self._event
        if piece.begin is not None:
            if event is not None:
                raise CorruptBinlog("a transaction begins within another", start=piece.begin.start, seqno=self._next)
            event = self._event = Event(piece.begin, self._limits.fragment, self._row_change_head)
        if event is None:
            raise CorruptBinlog("changes outside of a transaction", seqno=self._next)
        for change in piece.changes:
            event.hold(change)
        if event.head is None:
            large = event.size > self._limits.shard
            if piece.ending is None and not large:
                return []
            barrier = large or event.begin.kind is not Kind.TRANSACTION
            self._decide(event, UNKNOWN_SHARD if barrier else shard_of(event.schemas))
        fragments = [self._fragment(event, group) for change in event.held for group in event.cutter.add(change)]
        event.held.clear()
        if piece.ending is not None:
            fragments.append(self._last(event, piece.ending))
        return fragments

    def marker(self, partition: int, header: FragmentHeader) -> Fragment:
        """An EPOCH marker for a partition: it voids what is unfinished there.

        Args:
            partition: where it goes.
            header: of kind EPOCH.

        Returns:
            A fragment without changes that finishes no event.
        """
        head = EventHead(
            header.seqno,
            header.epoch,
            header.kind,
            header.shard,
            header.prev_seqno,
            header.last_barrier,
            header.server_id,
            header.thread_id,
            header.gtid,
            header.last_committed,
            header.sequence_number,
            avro.string_map(header.metadata),
        )
        if header.outcome is not None:
            head.end(header.event_id or "", header.commit_time or 0, header.outcome)
        value = self._writer.write(head, header.fragno, header.outcome is not None, header.rows, [])
        return Fragment(
            partition=partition,
            key=header.shard.encode(),
            value=value,
            seqno=header.seqno,
            fragno=header.fragno,
            finished=None,
            resume=None,
            barrier=False,
            commit_time=None,
        )

    def _decide(self, event: Event, shard: ShardId) -> None:
        begin = event.begin
        event.partition = partition_of(shard, self._partitions)
        event.key = shard.encode()
        event.head = EventHead(
            self._next,
            self._epoch,
            begin.kind,
            shard,
            self._tails.get(event.partition, NO_SEQNO),
            self._last_barrier,
            begin.server_id,
            begin.thread_id,
            begin.gtid,
            begin.last_committed,
            begin.sequence_number,
            self._event_metadata(begin, shard),
        )

    def _fragment(self, event: Event, group: Group, ending: Ending | None = None) -> Fragment:
        if event.head is None:  # `take` decides before it cuts
            raise CorruptBinlog("a fragment of an event without a number", seqno=self._next)
        event.written += group.rows
        value = self._writer.write(event.head, event.fragno, ending is not None, event.written, group.items)
        if len(value) + len(event.key) + BATCH_OVERHEAD > self._limits.message:
            raise Unsupported(
                f"a row of {group.table} or a statement takes {len(value)} bytes, more than a Kafka message may have",
                hint="raise kafka.max_message_bytes, and on the topic and the brokers max.message.bytes and "
                "message.max.bytes",
                seqno=self._next,
                limit=self._limits.message,
            )
        fragment = Fragment(
            partition=event.partition,
            key=event.key,
            value=value,
            seqno=self._next,
            fragno=event.fragno,
            finished=None,
            resume=None,
            barrier=False,
            commit_time=None,
        )
        event.fragno += 1
        return fragment

    def _last(self, event: Event, ending: Ending) -> Fragment:
        begin, head = event.begin, event.head
        if head is None:  # `take` decides before it ends an event
            raise CorruptBinlog("the end of an event without a number", seqno=self._next)
        event_id = str(EventId(ending.end.file, ending.end.offset, begin.thread_id))
        head.end(event_id, ending.commit_time, ending.outcome)
        fragment = self._fragment(event, event.cutter.rest(), ending)
        seqno = self._next
        fragment.finished = Finished(
            seqno=seqno, epoch=self._epoch, event_id=event_id, gtid=begin.gtid, digest=event.digest, start=begin.start
        )
        fragment.resume = ending.end
        fragment.commit_time = ending.commit_time
        fragment.barrier = is_barrier(begin.kind, ShardId(event.key.decode()))
        self._event = None
        self._next = Seqno(seqno + 1)
        self._tails[event.partition] = seqno
        if fragment.barrier:
            self._last_barrier = seqno
        return fragment

    def _row_change_head(self, layout: TableLayout, action: Action) -> bytes:
        # by identity: hashing a layout means hashing every column; the layout is kept, so its id stays its own
        kept = self._heads.get((id(layout), action))
        if kept is None:
            if len(self._heads) >= KEPT_HEADS:
                self._heads.clear()
            kept = self._heads[id(layout), action] = layout, encoded.row_change_head(layout, action)
        return kept[1]

    def _event_metadata(self, begin: Begin, shard: ShardId) -> bytes:
        if begin.metadata:
            return avro.string_map({**self._fixed(begin.server_id, shard), **begin.metadata})
        kept = self._metadata.get((begin.server_id, shard))
        if kept is None:
            if len(self._metadata) >= KEPT_HEADS:
                self._metadata.clear()
            kept = self._metadata[begin.server_id, shard] = avro.string_map(self._fixed(begin.server_id, shard))
        return kept

    def _fixed(self, server_id: int, shard: ShardId) -> dict[str, str]:
        return {"mysql_server_id": str(server_id), "dbms_type": "mysql", "service": self._service, "shard": shard}
