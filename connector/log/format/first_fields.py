"""The first fields of a fragment, which are all that finding a log's tail needs."""

from __future__ import annotations

from typing import Final, NamedTuple

from connector.errors import LogDamaged
from connector.log.format.framing import body_at
from connector.log.format.varint import read_long
from connector.log.ids import Epoch, Kind, Seqno

SHOWN: Final = 10  # bytes of a message that is none, for the error


class FirstFields(NamedTuple):
    """Where a fragment stands in its log."""

    seqno: Seqno
    fragno: int
    last_frag: bool
    epoch: Epoch
    kind: Kind
    prev_seqno: Seqno

    @property
    def finishes(self) -> bool:
        """Whether an event is whole with it."""
        return self.last_frag and self.kind is not Kind.EPOCH


def first_fields(value: bytes, at: str) -> FirstFields:
    """Read the beginning of a message of the event topic.

    Args:
        value: the message.
        at: where it stands, for the error.

    Raises:
        LogDamaged: not a fragment.
    """
    body = body_of(value, at)
    try:
        seqno, there = read_long(value, body)
        fragno, there = read_long(value, there)
        last = bool(value[there])
        epoch, there = read_long(value, there + 1)
        kind, there = read_long(value, there)
        shard, there = read_long(value, there)
        if shard < 0:
            raise LogDamaged("a fragment's shard has a negative length", at=at, begins=value[:SHOWN].hex())
        prev_seqno, _ = read_long(value, there + shard)
        return FirstFields(Seqno(seqno), fragno, last, Epoch(epoch), Kind(kind), Seqno(prev_seqno))
    except (IndexError, ValueError) as error:
        raise LogDamaged("a fragment ends within its header", at=at, begins=value[:SHOWN].hex()) from error


def body_of(value: bytes, at: str) -> int:
    """Where a message's Avro value begins.

    Args:
        value: the message.
        at: where it stands, for the error.

    Raises:
        LogDamaged: not a fragment.
    """
    try:
        return body_at(value)
    except ValueError as error:
        raise LogDamaged("a message of the event topic is not a fragment", at=at, begins=value[:SHOWN].hex()) from error
