"""The GTID_TAGGED event of MySQL 8.3 and later: a list of fields in MySQL's own serialization.

The format is that of `libs/mysql/serialization`: an integer of n bytes has n - 1 ones at the low end of its first
byte, signed ones are zigzag, a field is its id and its value, absent fields are left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from connector.errors import CorruptBinlog, Unsupported
from connector.mysql.fields import Fields

FLAGS, UUID, NUMBER, TAG, LAST_COMMITTED, SEQUENCE, COMMITTED, ORIGINALLY, LENGTH, VERSION, WHOLE_VERSION, TICKET = (
    range(12)
)
SIGNED = frozenset({NUMBER, LAST_COMMITTED, SEQUENCE})
LATEST = 1 << 55  # µs since 1970: an untagged GTID event has 55 bits for them


@dataclass(frozen=True, slots=True)
class TransactionGtid:
    """The GTID and commit times of the next transaction; times in µs since 1970 UTC."""

    gtid: str
    last_committed: int
    sequence_number: int
    commit_time: int
    metadata: Mapping[str, str]


def tagged_gtid(body: bytes) -> TransactionGtid:
    """Decodes a GTID_TAGGED event.

    Raises:
        Unsupported: an unknown field must not be ignored.
        CorruptBinlog: a mandatory field is missing, or a value is impossible.
    """
    gtid, values = tagged_values(body)
    committed = values.get(COMMITTED, 0)
    originally = values.get(ORIGINALLY, committed)
    return TransactionGtid(
        gtid,
        values.get(LAST_COMMITTED, 0),
        values.get(SEQUENCE, 0),
        committed,
        {} if originally == committed else {"original_commit_time": str(originally)},
    )


def tagged_values(body: bytes) -> tuple[str, dict[int, int]]:
    """Decodes a GTID_TAGGED event: the GTID, and the numbers by their field.

    Raises:
        Unsupported: an unknown field must not be ignored.
        CorruptBinlog: a mandatory field is missing, or a value is impossible.
    """
    event = Fields(body)
    varint(event)  # the version of the serialization
    varint(event)  # the size of the message
    needed = varint(event)  # the last field that must not be ignored
    values: dict[int, int] = {}
    source = b""
    tag = ""
    while event.left:
        field = varint(event)
        if field == UUID:
            octets = [varint(event) for _ in range(16)]
            if max(octets) > 0xFF:
                raise CorruptBinlog("a GTID event's uuid has an octet above 255")
            source = bytes(octets)
        elif field == TAG:
            tag = event.take(varint(event)).decode(errors="replace")
        elif field <= TICKET:
            value = varint(event)
            values[field] = (value >> 1) ^ -(value & 1) if field in SIGNED else value
        elif field <= needed:
            raise Unsupported(f"a GTID event has the unknown field {field}")
        else:
            break
    if not source or NUMBER not in values:
        raise CorruptBinlog("a GTID event without uuid or number")
    if values.get(COMMITTED, 0) >= LATEST:
        raise CorruptBinlog("a GTID event has an impossible commit time")
    return ":".join(filter(None, (str(uuid.UUID(bytes=source)), tag, str(values[NUMBER])))), values


def varint(event: Fields) -> int:
    """Reads an unsigned integer of 1 to 9 bytes."""
    first = event.number(1)
    more = 0
    while more < 8 and first >> more & 1:
        more += 1
    if more == 8:
        return event.number(8)
    return (first | event.number(more) << 8) >> more + 1
