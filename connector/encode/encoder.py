"""Pieces of transactions in, numbered fragments out.

An event is held back until it has ended, because only then its shard is known: one schema, or `#UNKNOWN`. One
that grows over `shard_bytes` before is `#UNKNOWN`, which is always safe, and leaves piece by piece. Whether
it does depends on its size alone, not on how it came in pieces. Kept between two calls are the held changes, or
one fragment's worth of them; numbers move when an event ends.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from zlib import crc32

from connector.encode import primitive as avro
from connector.encode.cut import Group, RowSlice
from connector.encode.event import Event
from connector.encode.fragment import EventHead, FragmentWriter
from connector.encode.numbering import Limits, Numbering
from connector.encode.remembered import Heads, Route, Routes
from connector.encode.schema import single_object_header
from connector.errors import CorruptBinlog, Unsupported
from connector.thl.event_id import EventId
from connector.thl.fragment import Fragment
from connector.thl.header import FragmentHeader
from connector.thl.layout import TableName
from connector.thl.piece import Begin, Ending, Piece, Rows, Statement
from connector.thl.position import Digest, Finished
from connector.thl.shard import shard_of
from connector.thl.words import NO_SEQNO, UNKNOWN_SHARD, Epoch, Kind, Seqno, ShardId, is_barrier

BATCH_OVERHEAD: Final = 512  # what Kafka's record batch adds to one message, at most


class Encoder:
    """Encodes one log's events.

    Args:
        service: whose log.
        source_id: the source's host:port.
        partitions: of the event topic.
        limits: sizes.
    """

    def __init__(self, *, service: str, source_id: str, partitions: int, limits: Limits) -> None:
        self._limits = limits
        self._writer = FragmentWriter(single_object_header(), source_id)
        self._heads = Heads()
        self._routes = Routes(service, partitions)
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
            if piece.ending is not None:
                small = self._small(piece.begin, piece.changes, piece.ending)
                if small is not None:
                    return [small]
            event = self._event = Event(piece.begin, self._limits.fragment, self._heads)
        if event is None:
            raise CorruptBinlog("changes outside of a transaction", seqno=self._next)
        for change in piece.changes:
            event.hold(change)
        if event.head is None or event.route is None:
            large = event.size > self._limits.shard
            if piece.ending is None and not large:
                return []
            event.route = self._route(event.begin, UNKNOWN_SHARD if large else _shard(event.begin, event.schemas))
            event.head = self._head(event.begin, event.route)
        head, route = event.head, event.route
        groups = [group for change in event.held for group in event.cutter.add(change)]
        event.held.clear()
        fragments = [self._fragment(event, head, route, group) for group in groups]
        if piece.ending is not None:
            event_id = _end(head, event.begin, piece.ending)
            last = self._fragment(event, head, route, event.cutter.rest(), last=True)
            fragments.append(self._finish(last, event.begin, piece.ending, event_id, event.digest))
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
            head.end(header.event_id, header.commit_time, header.outcome)
        value = self._writer.write(head, header.fragno, header.last_frag, header.rows, [])
        return _unfinished(partition, header.shard.encode(), value, header.seqno, header.fragno)

    def _small(self, begin: Begin, changes: list[Rows | Statement], ending: Ending) -> Fragment | None:
        """An event of rows that is one fragment, as nearly all are: what the long way gives, but quicker.

        Returns:
            The fragment; None when the long way has to be taken.
        """
        items: list[bytes | RowSlice] = []
        schemas = set()
        table = None
        rows = size = heads = check = 0
        for change in changes:
            if not isinstance(change, Rows):
                return None
            head = self._heads(change.layout, change.action)
            data = change.data
            items.append((head, change.count, data, 0, len(data)))
            table = change.layout.name
            schemas.add(table.schema)
            rows += change.count
            size += len(data)
            heads += len(head)
            check = crc32(data, check)
        if size > self._limits.shard or size + heads > self._limits.fragment:
            return None
        route = self._route(begin, _shard(begin, schemas))
        event = self._head(begin, route)
        event_id = _end(event, begin, ending)
        value = self._writer.write(event, 0, True, rows, items)
        self._check_size(value, route, table)
        fragment = _unfinished(route.partition, route.key, value, self._next, 0)
        return self._finish(fragment, begin, ending, event_id, Digest(rows, size, check))

    def _route(self, begin: Begin, shard: ShardId) -> Route:
        return self._routes(begin.server_id, shard)

    def _head(self, begin: Begin, route: Route) -> EventHead:
        return EventHead(
            self._next,
            self._epoch,
            begin.kind,
            route.shard,
            self._tails.get(route.partition, NO_SEQNO),
            self._last_barrier,
            begin.server_id,
            begin.thread_id,
            begin.gtid,
            begin.last_committed,
            begin.sequence_number,
            avro.string_map({**route.facts, **begin.metadata}) if begin.metadata else route.metadata,
        )

    def _fragment(self, event: Event, head: EventHead, route: Route, group: Group, *, last: bool = False) -> Fragment:
        event.written += group.rows
        value = self._writer.write(head, event.fragno, last, event.written, group.items)
        self._check_size(value, route, group.table)
        event.fragno += 1
        return _unfinished(route.partition, route.key, value, self._next, event.fragno - 1)

    def _check_size(self, value: bytes, route: Route, table: TableName | None) -> None:
        if len(value) + len(route.key) + BATCH_OVERHEAD <= self._limits.message:
            return
        what = f"a row of {table}" if table else "a statement"
        raise Unsupported(
            f"{what} takes {len(value)} bytes, more than a Kafka message may have",
            hint="raise kafka.max_message_bytes, and on the topic max.message.bytes",
            seqno=self._next,
            limit=self._limits.message,
        )

    def _finish(self, last: Fragment, begin: Begin, ending: Ending, event_id: str, digest: Digest) -> Fragment:
        """Make a fragment its event's last, and go on to the next number."""
        seqno = last.seqno
        last.finished = Finished(
            seqno=seqno, epoch=self._epoch, event_id=event_id, gtid=begin.gtid, digest=digest, start=begin.start
        )
        last.resume = ending.end
        last.commit_time = ending.commit_time
        last.barrier = is_barrier(begin.kind, ShardId(last.key.decode()))
        self._event = None
        self._next = Seqno(seqno + 1)
        self._tails[last.partition] = seqno
        if last.barrier:
            self._last_barrier = seqno
        return last


def _shard(begin: Begin, schemas: Collection[str]) -> ShardId:
    return shard_of(schemas) if begin.kind is Kind.TRANSACTION else UNKNOWN_SHARD


def _end(head: EventHead, begin: Begin, ending: Ending) -> str:
    event_id = str(EventId(ending.end.file, ending.end.offset, begin.thread_id))
    head.end(event_id, ending.commit_time, ending.outcome)
    return event_id


def _unfinished(partition: int, key: bytes, value: bytes, seqno: Seqno, fragno: int) -> Fragment:
    return Fragment(
        partition=partition,
        key=key,
        value=value,
        seqno=seqno,
        fragno=fragno,
        finished=None,
        resume=None,
        barrier=False,
        commit_time=None,
    )
