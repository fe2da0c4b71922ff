"""Messages of loads for other targets without their rows: a position needs their headers alone."""

from __future__ import annotations

import zlib
from typing import Final

from connector.log.format import header_reader
from connector.log.format.framing import LOAD_FINGERPRINT, REGISTERED, SINGLE_OBJECT, body_at, schema_of
from connector.log.ids import Kind
from connector.log.transaction.load import for_others

_CRC_BYTES: Final = 4
_OPENINGS: Final = (SINGLE_OBJECT + bytes.fromhex(LOAD_FINGERPRINT), REGISTERED)


def without_rows(value: bytes | bytearray, target: str) -> bytes | None:
    """Return a message of a load for other targets without its rows.

    Args:
        value: any message of the event topic.
        target: the target's ID, as that of `for_others`.

    Returns:
        The message, which has no changes; its header is as it was. None for all others, and for a damaged one.
    """
    if not value.startswith(_OPENINGS):
        return None
    try:
        body = body_at(bytes(value[: len(_OPENINGS[0])]))
        if header_reader.first_fields(value, body)[4] is not Kind.LOAD:
            return None
        metadata = header_reader.metadata(value, body)
        if not for_others(metadata, target) or schema_of(bytes(value[:16]), metadata) != LOAD_FINGERPRINT:
            return None
        if zlib.crc32(memoryview(value)[body:-_CRC_BYTES]) != int.from_bytes(value[-_CRC_BYTES:], "big"):
            return None
        return header_reader.without_changes(value, body)
    except (ValueError, IndexError):
        return None  # the applier refuses it, and says why
