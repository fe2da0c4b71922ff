"""The FORMAT_DESCRIPTION event: how the events behind it are written, and whether they have checksums."""

from __future__ import annotations

import re
import zlib

from connector.capture.fields import Fields
from connector.errors import CorruptBinlog, Unsupported

HEADER = 19
CHECKSUMS_SINCE = (5, 6, 1)
CHECKSUMS_SINCE_IN_MARIADB = (5, 3)
TYPES_BEFORE_CHECKSUMS = 32  # none of those servers had more; every one since has
NO_CHECKSUM, CRC32 = 0, 1
# Bytes of the fixed part that we decode, by event type: QUERY, TABLE_MAP, ROWS v1 and v2. A server says 0 for what it
# does not write.
POST_HEADERS = {2: 13, 19: 8, 23: 8, 24: 8, 25: 8, 30: 10, 31: 10, 32: 10}


def format_description(event: bytes) -> bool:
    """Whether the events of this file have a CRC-32 behind them.

    Args:
        event: the whole event, its in-use flag cleared.

    Raises:
        Unsupported: the file is of another version, or its events have fixed parts that we do not know.
        CorruptBinlog: the checksum or a length is wrong.
    """
    fields = Fields(event)
    fields.take(HEADER)
    version = fields.number(2)
    if version != 4:
        raise Unsupported(f"a binary log of version {version}; MySQL 5.0 and later write version 4")
    server = fields.take(50).rstrip(b"\0").decode(errors="replace")
    fields.take(4)
    header = fields.number(1)
    if header != HEADER:
        raise Unsupported(f"events with a header of {header} bytes", server=server)
    rest = fields.rest()
    algorithm = NO_CHECKSUM
    if _version(server) >= (CHECKSUMS_SINCE_IN_MARIADB if "MariaDB" in server else CHECKSUMS_SINCE):
        if len(rest) < 5:
            raise CorruptBinlog("a format description ends early", server=server)
        algorithm, checksum = rest[-5], int.from_bytes(rest[-4:], "little")
        # In a log without checksums it has one itself, but a server may change it for the stream and not its checksum.
        # One that is right for a log with checksums tells that the algorithm is what is damaged.
        if algorithm != NO_CHECKSUM:
            damaged = algorithm == CRC32 and zlib.crc32(event[:-4]) != checksum
        else:
            damaged = zlib.crc32(event[:-5] + bytes([CRC32])) == checksum
        if damaged:
            raise CorruptBinlog("a format description's checksum is wrong", server=server)
        rest = rest[:-5]
    elif len(rest) > TYPES_BEFORE_CHECKSUMS:
        raise CorruptBinlog("a format description is longer than its server could write it", server=server)
    if algorithm not in {NO_CHECKSUM, CRC32}:
        raise Unsupported(f"the checksum algorithm {algorithm}", server=server)
    for kind, size in POST_HEADERS.items():
        if kind <= len(rest) and rest[kind - 1] not in {0, size}:
            raise Unsupported(f"events of type {kind} with a fixed part of {rest[kind - 1]} bytes", server=server)
    return algorithm == CRC32


def _version(server: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", server)
    return tuple(map(int, found.groups())) if found else (0, 0, 0)
