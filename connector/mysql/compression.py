"""Compressed data of the binary log: their plain size is checked before and while they are expanded."""

from __future__ import annotations

import zlib
from typing import Final

from connector.errors import CorruptBinlog, Unsupported
from connector.mysql.fields import Fields

LARGEST: Final = 0x40000000  # what max_allowed_packet ends at: no event is larger


def too_large(size: int, largest: int) -> Unsupported:
    """The error for a compressed event that would need more memory than is granted."""
    return Unsupported(
        f"a compressed event stands for {size} bytes, and {largest} are granted",
        hint=f"if the source has rows so large: source.largest_event_bytes (thl binlog --largest-event) = {size}",
    )


def column_value(data: bytes, largest: int = LARGEST) -> bytes:
    """A value of a column with the attribute COMPRESSED (MariaDB's `sql/field_comp.cc`).

    1 byte: 0, and the value follows as it is; or 8 in its upper half for zlib, then a bit that says "no zlib header",
    then the size of the length. The empty value has not even that byte.

    Raises:
        CorruptBinlog: it cannot be decompressed, or has another length.
        Unsupported: another compression than zlib, or more than `largest` bytes.
    """
    if not data or data[0] == 0:
        return data[1:]
    fields = Fields(data)
    head = fields.number(1)
    if head >> 4 != 8:
        raise Unsupported(f"a value compressed by method {head >> 4}")
    return inflated(fields, head & 0x07, largest, -zlib.MAX_WBITS if head & 0x08 else zlib.MAX_WBITS)


def inflated(fields: Fields, length_size: int, largest: int, wbits: int) -> bytes:
    """zlib's stream behind its expanded length, and no more than that length."""
    length = int.from_bytes(fields.take(length_size), "big")
    if length > LARGEST:
        raise CorruptBinlog(f"compressed data say that they expand to {length} bytes")
    if length > largest:
        raise too_large(length, largest)
    stream = zlib.decompressobj(wbits)
    try:
        # One byte of room more than it needs, or zlib may not look for the stream's end.
        plain = stream.decompress(fields.rest(), length + 1)
    except zlib.error as error:
        raise CorruptBinlog(f"compressed data are damaged: {error}") from error
    if len(plain) != length or not stream.eof:
        raise CorruptBinlog(f"compressed data have another size than the {length} bytes they say")
    return plain
