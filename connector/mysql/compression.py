"""Expands compressed data of the binary log. The size is checked before and during expansion."""

from __future__ import annotations

import zlib
from typing import Final

from connector.errors import CorruptBinlog, Unsupported
from connector.mysql.fields import Fields

LARGEST: Final = 0x40000000  # the limit of max_allowed_packet, and so of events


def too_large(size: int, largest: int) -> Unsupported:
    """The error for a compressed event that is larger than configured.

    Args:
        size: expanded size in bytes.
        largest: the configured limit.
    """
    return Unsupported(
        f"a compressed event expands to {size} bytes; the limit is {largest}",
        size=size,
        limit=largest,
        hint=f"if the source has such large rows: source.largest_event_bytes (thl binlog --largest-event) = {size}",
    ).with_file_hint(f"--largest-event {size} reads it")


def column_value(data: bytes, largest: int = LARGEST) -> bytes:
    """Expands a value of a COMPRESSED column (MariaDB's `sql/field_comp.cc`).

    1 byte: 0, and the plain value follows; or 8 in its upper half for zlib, then a bit for "no zlib header",
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
        raise Unsupported(f"a value compressed by the unknown method {head >> 4}", method=head >> 4)
    return inflated(fields, head & 0x07, largest, -zlib.MAX_WBITS if head & 0x08 else zlib.MAX_WBITS)


def inflated(fields: Fields, length_size: int, largest: int, wbits: int) -> bytes:
    """Expands a zlib stream that follows its expanded length.

    Args:
        fields: the bytes from the length on.
        length_size: bytes of the length, big-endian.
        largest: the most bytes to expand to.
        wbits: `wbits` of `zlib.decompressobj`.

    Raises:
        CorruptBinlog: the stream is damaged or has another length.
        Unsupported: more than `largest` bytes.
    """
    length = int.from_bytes(fields.take(length_size), "big")
    if length > LARGEST:
        raise CorruptBinlog(f"compressed data have an impossible length of {length} bytes", length=length)
    if length > largest:
        raise too_large(length, largest)
    stream = zlib.decompressobj(wbits)
    try:
        # With one byte more than needed zlib also looks for the stream's end.
        plain = stream.decompress(fields.rest(), length + 1)
    except zlib.error as error:
        raise CorruptBinlog(f"compressed data are damaged: {error}") from error
    if len(plain) != length or not stream.eof:
        raise CorruptBinlog(f"compressed data do not expand to the stored length of {length} bytes", length=length)
    return plain
