"""One transaction of the source, whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from connector.consume.decoding import Decoder, RowChanges, Statement
from connector.consume.fragments import Fragments
from connector.consume.position import ConsumerPosition
from connector.consume.start import EPOCH
from connector.log.format.header import FragmentHeader
from connector.log.ids import Epoch, Kind, Outcome, Seqno, ShardId


@dataclass(frozen=True, slots=True)
class Event:
    """A finished event of the log. What it says of itself is read; its changes are decoded when they are asked for.

    Args:
        header: of its last fragment, which knows all.
        position: the place behind it.
        topic: of its messages.
    """

    header: FragmentHeader
    position: ConsumerPosition
    topic: str
    _fragments: Fragments = field(repr=False)
    _decoder: Decoder = field(repr=False)

    @property
    def changes(self) -> Iterator[RowChanges | Statement]:
        """What it changed, in order; from the first one each time.

        One fragment is decoded at a time, or the one change that was too large for a message: memory does not grow
        with the transaction.

        Raises:
            LogDamaged: a fragment cannot be read.
        """
        if self.outcome is Outcome.VOID:
            return
        yield from self._decoder.changes(self._fragments, self.place)

    @property
    def seqno(self) -> Seqno:
        """Its number in the log: 0, 1, 2 …"""
        return self.header.seqno

    @property
    def epoch(self) -> Epoch:
        """Of the producer's run that wrote it."""
        return self.header.epoch

    @property
    def kind(self) -> Kind:
        """A transaction, DDL or a heartbeat."""
        return self.header.kind

    @property
    def outcome(self) -> Outcome | None:
        """How it ended on the source; what is void has no changes."""
        return self.header.outcome

    @property
    def shard(self) -> ShardId:
        """The part of the data it touches; `#UNKNOWN`: several, none, or not known in time."""
        return self.header.shard

    @property
    def barrier(self) -> bool:
        """Whether all before it precede it, and all after it follow it, in every shard."""
        return self.header.barrier

    @property
    def event_id(self) -> str:
        """Where it stands in the source's binary log: `file:END position;thread`."""
        return self.header.event_id or ""

    @property
    def gtid(self) -> str | None:
        """The source's GTID, if it has one."""
        return self.header.gtid

    @property
    def commit_time(self) -> datetime:
        """When it was committed on its source, to the microsecond, in UTC."""
        return EPOCH + timedelta(microseconds=self.header.commit_time or 0)

    @property
    def source_id(self) -> str:
        """host:port of the server it was read from."""
        return self.header.source_id

    @property
    def server_id(self) -> int:
        """MySQL's server_id of the server where it was executed first."""
        return self.header.server_id

    @property
    def thread_id(self) -> int:
        """The connection there, 0 when unknown."""
        return self.header.thread_id

    @property
    def rows(self) -> int:
        """How many rows it changes."""
        return self.header.rows

    @property
    def metadata(self) -> Mapping[str, str]:
        """What else is known of it: `snapshot` for an initial load's, `xid` for an XA transaction's …"""
        return self.header.metadata

    @property
    def size(self) -> int:
        """Bytes of its messages."""
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
