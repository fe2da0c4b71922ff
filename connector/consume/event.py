"""A whole transaction of the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from connector.consume.decoding import MessageDecoder, RowChanges
from connector.consume.fragments import Fragments
from connector.consume.position import ConsumerPosition
from connector.consume.start import EPOCH
from connector.log.format.header import FragmentHeader
from connector.log.ids import Epoch, Kind, Outcome, Seqno, ShardId
from connector.log.rules import damaged
from connector.log.transaction.batch import Statement
from connector.log.transaction.load import LoadEvent


@dataclass(frozen=True, slots=True)
class Event:
    """A finished event of the log. Its header is decoded; its changes are decoded when they are read.

    Args:
        header: the header of its last fragment, which has all fields.
        position: the position after the event.
        topic: the event topic, for errors.
    """

    header: FragmentHeader
    position: ConsumerPosition
    topic: str
    _fragments: Fragments = field(repr=False)
    _decoder: MessageDecoder = field(repr=False)

    @property
    def changes(self) -> Iterator[RowChanges | Statement]:
        """The changes, in order; each call begins with the first.

        One fragment is decoded at a time, or one change that was larger than a message, so memory does not grow with
        the transaction.

        Raises:
            LogDamaged: a fragment cannot be read.
        """
        if self.outcome is Outcome.VOID:
            return
        yield from self._decoder.changes(self._fragments, self.place)

    @property
    def seqno(self) -> Seqno:
        """The event's number in the log: 0, 1, 2 …"""
        return self.header.seqno

    @property
    def epoch(self) -> Epoch:
        """The epoch of the producer that wrote it."""
        return self.header.epoch

    @property
    def kind(self) -> Kind:
        """Transaction, DDL, or a part of a table's load."""
        return self.header.kind

    @property
    def load(self) -> LoadEvent | None:
        """The table's load that the event is a part of, with its part; None for what the source executed.

        Raises:
            LogDamaged: the metadata do not say of which load.
        """
        if self.kind is not Kind.LOAD:
            return None
        try:
            return LoadEvent.of(self.metadata)
        except ValueError as error:
            raise damaged(error, seqno=self.seqno, at=self.place) from error

    @property
    def outcome(self) -> Outcome | None:
        """The outcome on the source: commit or rollback; void for an event without changes."""
        return self.header.outcome

    @property
    def shard(self) -> ShardId:
        """The shard that it changes; `#UNKNOWN`: several, none, or not known in time."""
        return self.header.shard

    @property
    def barrier(self) -> bool:
        """True if every shard has all earlier events before it and all later events after it."""
        return self.header.barrier

    @property
    def event_id(self) -> str:
        """The event's end in the source's binary log: `file:END position;thread`."""
        return self.header.event_id or ""

    @property
    def gtid(self) -> str | None:
        """The source's GTID, if it has one."""
        return self.header.gtid

    @property
    def commit_time(self) -> datetime:
        """Commit time on the source, in microseconds, UTC."""
        return EPOCH + timedelta(microseconds=self.header.commit_time or 0)

    @property
    def source_id(self) -> str:
        """host:port of the server that the producer read."""
        return self.header.source_id

    @property
    def server_id(self) -> int:
        """server_id of the server that executed it first."""
        return self.header.server_id

    @property
    def thread_id(self) -> int:
        """Connection id on that server, 0 when unknown."""
        return self.header.thread_id

    @property
    def rows(self) -> int:
        """Number of changed rows."""
        return self.header.rows

    @property
    def metadata(self) -> Mapping[str, str]:
        """Further facts: `snapshot` of an initial load, `load` of a table's load, `xid` of an XA transaction, …"""
        return self.header.metadata

    @property
    def size(self) -> int:
        """Bytes of all its messages."""
        return self._fragments.size

    @property
    def partition(self) -> int:
        """The partition of the event topic that holds it."""
        return self._fragments.partition

    @property
    def messages(self) -> Iterator[tuple[int, bytes]]:
        """Offset and bytes of each of its messages, as Kafka holds them."""
        return self._fragments.messages()

    @property
    def place(self) -> str:
        """topic-partition@offset of its first fragment."""
        return f"{self.topic}-{self._fragments.partition}@{self._fragments.offset}"
