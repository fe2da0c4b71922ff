"""Records of the compacted topic `thl.<service>.prepared`: XA transactions that are prepared and not decided.

A message of a transaction has the key `piece:<attempt>:<number>`; this module does not know its content. The closing
record has the key `xid:<xid>` and is JSON. When a transaction is decided, tombstones remove its records; Kafka deletes
them some time later. Messages of an attempt without a closing record are void: the producer read the transaction again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from connector.errors import LogDamaged
from connector.kafka.records import reading
from connector.log.format import checked
from connector.log.ids import Kind
from connector.log.transaction.pending import Pending, PendingChecksum, PendingSet, Stored
from connector.log.transaction.position import SourcePosition

MESSAGE_KEY: Final = b"piece:"
XID_KEY: Final = b"xid:"


def message_key(attempt: str, number: int) -> bytes:
    """The key of a message of an attempt."""
    return MESSAGE_KEY + f"{attempt}:{number}".encode()


def closing_record(pending: Pending, kept: PendingChecksum) -> Stored:
    """The record that makes an attempt's messages valid."""
    value = {
        "xid": pending.xid,
        "attempt": pending.attempt,
        "pieces": pending.batches,
        "messages": pending.messages,
        "gtid": pending.gtid,
        "start": [pending.start.file, pending.start.offset],
        "time": pending.time,
        "kind": pending.kind,
    }
    return Stored(XID_KEY + pending.xid.encode(), json.dumps(value, separators=(",", ":")).encode(), kept)


def tombstones(pending: Pending, kept: PendingChecksum) -> list[Stored]:
    """Tombstones of a decided transaction: of its closing record and of its messages."""
    return [Stored(XID_KEY + pending.xid.encode(), None, kept), *attempt_tombstones(pending.attempt, pending.messages)]


def attempt_tombstones(attempt: str, messages: int) -> list[Stored]:
    """Tombstones of an attempt's messages."""
    return [Stored(message_key(attempt, number), None) for number in range(messages)]


@dataclass(frozen=True, slots=True)
class PreparedState:
    """The content of the topic.

    Args:
        pending: transactions with a closing record.
        starts: attempt → the offset of its first message.
        strays: keys of messages without a closing record.
        end: the topic's end offset.
    """

    pending: PendingSet = field(default_factory=PendingSet)
    starts: dict[str, int] = field(default_factory=dict)
    strays: tuple[bytes, ...] = ()
    end: int = 0


class PreparedReader:
    """Accepts the topic's records from its beginning; keeps one number in memory for each message."""

    def __init__(self) -> None:
        self._closings: dict[bytes, Pending] = {}
        self._attempts: dict[str, dict[int, int]] = {}  # message number → offset

    def accept(self, offset: int, key: bytes, value: bytes | None) -> None:
        """Accept the next record.

        Raises:
            LogDamaged: it is not a record of a producer.
        """
        if key.startswith(XID_KEY):
            if value is None:
                self._closings.pop(key, None)
            else:
                self._closings[key] = _pending(value)
            return
        attempt, colon, number = key.removeprefix(MESSAGE_KEY).decode(errors="replace").rpartition(":")
        if not key.startswith(MESSAGE_KEY) or not colon or not number.isdecimal():
            raise LogDamaged("the topic of prepared transactions holds an unknown record", key=key[:80])
        if value is not None:
            self._attempts.setdefault(attempt, {})[int(number)] = offset
        elif attempt in self._attempts:
            self._attempts[attempt].pop(int(number), None)
            if not self._attempts[attempt]:
                del self._attempts[attempt]

    def state(self, end: int) -> PreparedState:
        """The state after all accepted records.

        Raises:
            LogDamaged: messages of a prepared transaction are missing.
        """
        starts, strays = {}, []
        closed = {pending.attempt: pending for pending in self._closings.values()}
        for pending in closed.values():
            found = sorted(self._attempts.get(pending.attempt, {}))
            if found != list(range(pending.messages)):
                raise LogDamaged(
                    "messages of a prepared transaction are missing",
                    xid=pending.xid,
                    attempt=pending.attempt,
                    messages=pending.messages,
                    found=len(found),
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
            batches=found["pieces"],
            messages=found["messages"],
            gtid=found["gtid"],
            start=SourcePosition(*found["start"]),
            time=found["time"],
            kind=Kind(found["kind"]),
        )
        return checked.record(pending)
