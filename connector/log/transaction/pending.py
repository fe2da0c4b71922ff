"""XA transactions between XA PREPARE and XA COMMIT or XA ROLLBACK.

The producer writes the batches of a prepared transaction to a topic of their own as it reads them. Their keys name the
*attempt* to read the transaction; no two attempts have the same name. The batches count only once their closing record
(`Pending`) exists, which is written in one Kafka transaction with the position after XA PREPARE. An attempt that ends
before that is therefore void, and the transaction is read again from its start. XA COMMIT deletes the closing record in
the Kafka transaction with the event's last fragment.

The position holds the number of pending transactions and a checksum over them, so that a topic that lost its end or was
re-created is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from connector.log.ids import Epoch, Kind
from connector.log.transaction.source_position import SourcePosition


@dataclass(frozen=True, slots=True)
class PendingChecksum:
    """The number of pending transactions, and a checksum that does not depend on their order.

    Args:
        count: the number of transactions.
        check: the sum of `Pending.check` of all of them, modulo 2^32.
    """

    count: int = 0
    check: int = 0


NOTHING: Final = PendingChecksum()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The closing record of a prepared transaction: all its batches are in the topic.

    Args:
        xid: the transaction's XID as MySQL writes it.
        attempt: the name in the keys of its messages.
        batches, messages: the number of its batches, and of the messages that hold them; 0: no captured changes.
        gtid: the GTID of XA PREPARE, None where the source has none.
        start: the position in the source's log where it begins.
        time: the time of XA PREPARE, µs since 1970 UTC.
        kind: the kind of the event that XA COMMIT makes of it.
    """

    xid: str
    attempt: str
    batches: int
    messages: int
    gtid: str | None
    start: SourcePosition
    time: int
    kind: Kind = Kind.TRANSACTION

    @property
    def epoch(self) -> Epoch:
        """The epoch that a producer was in when it went online, and read the transaction: the attempt names it."""
        return Epoch(int(self.attempt.partition(".")[0]))

    @property
    def check(self) -> int:
        """The CRC-32 of what identifies the transaction: what it adds to `PendingChecksum.check`."""
        return crc32(f"{self.xid}/{self.attempt}/{self.batches}/{self.messages}".encode())


@dataclass(frozen=True, slots=True)
class Stored:
    """A record to be written to the topic of prepared transactions.

    Args:
        key, value: the record; a value of None deletes the key's record.
        kept: the pending transactions after it; set with a closing record and with its deletion.
    """

    key: bytes
    value: bytes | None
    kept: PendingChecksum | None = None

    @property
    def size(self) -> int:
        """The bytes of key and value."""
        return len(self.key) + len(self.value or b"")


class PendingSet:
    """The pending XA transactions.

    Args:
        found: the ones that were pending when the producer went online.
    """

    def __init__(self, found: Iterable[Pending] = ()) -> None:
        self._by_xid = {pending.xid: pending for pending in found}
        self._check = sum(pending.check for pending in self._by_xid.values())

    def __iter__(self) -> Iterator[Pending]:
        return iter(self._by_xid.values())

    @property
    def kept(self) -> PendingChecksum:
        """The checksum that the position holds."""
        return PendingChecksum(len(self._by_xid), self._check % (1 << 32))

    @property
    def oldest(self) -> int | None:
        """The time of the oldest XA PREPARE; None if no transaction is pending."""
        return min((pending.time for pending in self._by_xid.values()), default=None)

    def prepare(self, pending: Pending) -> Pending | None:
        """Add a transaction.

        Returns:
            The one with the same xid that it replaces, None if there was none. MySQL prepares an xid once at a time, so
            the replaced one is the same transaction, read before.
        """
        before = self.end(pending.xid)
        self._by_xid[pending.xid] = pending
        self._check += pending.check
        return before

    def get(self, xid: str) -> Pending | None:
        """The transaction with this xid; None if none is pending."""
        return self._by_xid.get(xid)

    def end(self, xid: str) -> Pending | None:
        """Remove a transaction that was committed or rolled back.

        Returns:
            The transaction; None if none with this xid is pending.
        """
        ended = self._by_xid.pop(xid, None)
        if ended is not None:
            self._check -= ended.check
        return ended
