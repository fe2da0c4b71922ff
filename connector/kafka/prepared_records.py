"""The records of `thl.<service>.prepared`: XA transactions that are prepared and not decided. Compacted.

A piece's message is kept under `piece:<attempt>:<number>`; what it holds is not known here. The closing record stands
under `xid:<xid>` and is JSON. What is decided is taken away by tombstones, and by Kafka some time later. Messages
of an attempt without a closing record are nothing: the producer that wrote them read the transaction again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from connector.errors import LogDamaged
from connector.kafka.records import reading
from connector.log.format import checked
from connector.log.ids import Kind
from connector.log.transaction.pending import Kept, Pending, PendingSet, Stored
from connector.log.transaction.position import SourcePosition

PIECE_KEY: Final = b"piece:"
XID_KEY: Final = b"xid:"


def message_key(attempt: str, number: int) -> bytes:
    """The key of a message of a piece."""
    return PIECE_KEY + f"{attempt}:{number}".encode()


def closing_record(pending: Pending, kept: Kept) -> Stored:
    """The record that makes an attempt's messages count."""
    value = {
        "xid": pending.xid,
        "attempt": pending.attempt,
        "pieces": pending.pieces,
        "messages": pending.messages,
        "gtid": pending.gtid,
        "start": [pending.start.file, pending.start.offset],
        "time": pending.time,
        "kind": pending.kind,
    }
    return Stored(XID_KEY + pending.xid.encode(), json.dumps(value, separators=(",", ":")).encode(), kept)


def tombstones(pending: Pending, kept: Kept) -> list[Stored]:
    """What takes a transaction that is decided away: its closing record, and its pieces."""
    return [Stored(XID_KEY + pending.xid.encode(), None, kept), *attempt_tombstones(pending.attempt, pending.messages)]


def attempt_tombstones(attempt: str, messages: int) -> list[Stored]:
    """What takes an attempt's messages away."""
    return [Stored(message_key(attempt, number), None) for number in range(messages)]


@dataclass(frozen=True, slots=True)
class PreparedState:
    """What the topic holds.

    Args:
        pending: by their closing records.
        starts: attempt → the offset of its first message.
        strays: keys of messages that belong to none of them.
        end: where the topic ended.
    """

    pending: PendingSet = field(default_factory=PendingSet)
    starts: dict[str, int] = field(default_factory=dict)
    strays: tuple[bytes, ...] = ()
    end: int = 0


class PreparedReader:
    """Reads the topic from its beginning. What is held in memory is a number for each message that is kept."""

    def __init__(self) -> None:
        self._closings: dict[bytes, Pending] = {}
        self._attempts: dict[str, dict[int, int]] = {}  # of each message's number, the offset

    def accept(self, offset: int, key: bytes, value: bytes | None) -> None:
        """The next record.

        Raises:
            LogDamaged: not one that we wrote.
        """
        if key.startswith(XID_KEY):
            if value is None:
                self._closings.pop(key, None)
            else:
                self._closings[key] = _pending(value)
            return
        attempt, colon, number = key.removeprefix(PIECE_KEY).decode(errors="replace").rpartition(":")
        if not key.startswith(PIECE_KEY) or not colon or not number.isdecimal():
            raise LogDamaged("the topic of prepared transactions holds a record that is not ours", key=key[:80])
        if value is not None:
            self._attempts.setdefault(attempt, {})[int(number)] = offset
        elif attempt in self._attempts:
            self._attempts[attempt].pop(int(number), None)
            if not self._attempts[attempt]:
                del self._attempts[attempt]

    def state(self, end: int) -> PreparedState:
        """What was found.

        Raises:
            LogDamaged: a transaction is said to be prepared, and something of it is missing.
        """
        starts, strays = {}, []
        closed = {pending.attempt: pending for pending in self._closings.values()}
        for pending in closed.values():
            there = sorted(self._attempts.get(pending.attempt, {}))
            if len(there) != pending.messages or there != list(range(len(there))):
                raise LogDamaged(
                    "What is kept of a prepared transaction is not all there",
                    xid=pending.xid,
                    attempt=pending.attempt,
                    messages=pending.messages,
                    found=len(there),
                )
        for attempt, offsets in self._attempts.items():
            if attempt in closed:
                starts[attempt] = min(offsets.values())
            else:
                strays += [message_key(attempt, number) for number in offsets]
        return PreparedState(PendingSet(self._closings.values()), starts, tuple(strays), end)


def _pending(value: bytes) -> Pending:
    with reading("the record of a prepared transaction", value=value[:200]):
        found = json.loads(value)
        pending = Pending(
            xid=found["xid"],
            attempt=found["attempt"],
            pieces=found["pieces"],
            messages=found["messages"],
            gtid=found["gtid"],
            start=SourcePosition(*found["start"]),
            time=found["time"],
            kind=Kind(found["kind"]),
        )
        return checked.record(pending)
