"""XA transactions that are prepared and not decided: pure, the same for the producer and for its model.

The pieces of a prepared transaction are written to a topic of their own as they are read, under the name of this
*attempt* to read it, which is never given twice. They count only when the closing record (`Pending`) is there; it is
written in one Kafka transaction with the position that is past the PREPARE. So an attempt that ends within is void
by itself, and the transaction is read again from its start. XA COMMIT takes the closing record away in the Kafka
transaction that holds the event's last fragment.

The position says how many are pending, and a sum over them: a topic that lost its end or was re-created is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from connector.log.ids import Kind
from connector.log.transaction.source_position import SourcePosition


@dataclass(frozen=True, slots=True)
class Kept:
    """All that is pending, in short.

    Args:
        count: how many transactions.
        check: the sum of the CRC-32 of what identifies each, modulo 2^32: in whatever order they came.
    """

    count: int = 0
    check: int = 0


NOTHING: Final = Kept()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A prepared transaction of which everything is kept: its closing record.

    Args:
        xid: as MySQL writes it.
        attempt: under which its pieces are kept.
        pieces, messages: how many pieces it came in, and as how many messages they are kept; 0: nothing for us.
        gtid: of the PREPARE, None where the source has none.
        start: where it begins in the source's log.
        time: of the PREPARE, µs since 1970 UTC.
        kind: what it is when it is committed.
    """

    xid: str
    attempt: str
    pieces: int
    messages: int
    gtid: str | None
    start: SourcePosition
    time: int
    kind: Kind = Kind.TRANSACTION

    @property
    def check(self) -> int:
        """The part of `Kept.check` that this transaction adds."""
        return crc32(f"{self.xid}/{self.attempt}/{self.pieces}/{self.messages}".encode())


@dataclass(frozen=True, slots=True)
class Stored:
    """A record of the topic of prepared transactions, on its way there.

    Args:
        key, value: None for a value takes the key's record away.
        kept: what is pending from here on; told with a closing record and with what takes one away.
    """

    key: bytes
    value: bytes | None
    kept: Kept | None = None

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.key) + len(self.value or b"")


class PendingSet:
    """The transactions that are prepared.

    Args:
        found: those that were, when the producer went online.
    """

    def __init__(self, found: Iterable[Pending] = ()) -> None:
        self._by_xid = {pending.xid: pending for pending in found}
        self._check = sum(pending.check for pending in self._by_xid.values())

    def __iter__(self) -> Iterator[Pending]:
        return iter(self._by_xid.values())

    @property
    def kept(self) -> Kept:
        """As the position remembers it."""
        return Kept(len(self._by_xid), self._check % (1 << 32))

    @property
    def oldest(self) -> int | None:
        """The time at which the oldest pending one was prepared; None: there is none."""
        return min((pending.time for pending in self._by_xid.values()), default=None)

    def prepare(self, pending: Pending) -> Pending | None:
        """One is prepared.

        Returns:
            The one of the same xid that it replaces: MySQL has no two at a time, so that one was read before.
        """
        before = self.end(pending.xid)
        self._by_xid[pending.xid] = pending
        self._check += pending.check
        return before

    def get(self, xid: str) -> Pending | None:
        """The one of this xid."""
        return self._by_xid.get(xid)

    def end(self, xid: str) -> Pending | None:
        """It is committed or rolled back.

        Returns:
            It; None when none of this xid is pending.
        """
        ended = self._by_xid.pop(xid, None)
        if ended is not None:
            self._check -= ended.check
        return ended
