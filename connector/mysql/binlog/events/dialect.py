"""Rewrites events of older layouts to today's layout.

Version 1 (3.23) has headers of 13 bytes, without position and flags. Version 3 (4.0, 4.1) has today's header, but its
position is unreliable: the start of the event, in a transaction the offset in its cache. Both begin with a START_V3
event. Version 4 (5.0 and later) stores the length of each type's fixed part: fields that today's servers do not write
are cut off. Early 5.1 has table ids of 4 bytes, early 5.0 no length of the status variables.

Sources: MySQL's `libs/mysql/binlog/event/binlog_event.h`, `control_events.h`, and `sql/log_event.cc` of 5.5.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connector.errors import CorruptBinlog, Unsupported
from connector.mysql.binlog.events.event_types import HEADER

OLDEST_HEADER: Final = 13  # bytes, before MySQL 4.0
START_BODY: Final = 2 + 50 + 4
SIZE_AT, POSITION_AT = 9, 13
QUERY, ROTATE, TABLE_MAP = 2, 4, 19
ROWS_V1: Final = frozenset({23, 24, 25})
OLDEST_QUERY, SHORT_IDS = 11, 6
FILE_START: Final = struct.pack("<Q", 4)

# Bytes of the fixed part that is decoded, by type: QUERY, ROTATE, INTVAR, APPEND_BLOCK, DELETE_FILE, RAND, USER_VAR,
# XID, BEGIN_LOAD_QUERY, EXECUTE_LOAD_QUERY, TABLE_MAP, rows of both versions. A GTID event is one fixed part
# that grew; its length is that of the event.
POST_HEADERS: Final[Mapping[int, int]] = {
    2: 13, 4: 8, 5: 0, 9: 4, 11: 4, 13: 0, 14: 0, 16: 0, 17: 4, 18: 26, 19: 8, 23: 8, 24: 8, 25: 8,
    30: 10, 31: 10, 32: 10,
}  # fmt: skip
SHORTER: Final[Mapping[int, int]] = {QUERY: OLDEST_QUERY} | dict.fromkeys((TABLE_MAP, *ROWS_V1), SHORT_IDS)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The layout of a file's events.

    Args:
        version: version of the log.
        header: bytes of a header.
        fixed: bytes of fixed parts, by type, that differ from today's.
    """

    version: int
    header: int
    fixed: Mapping[int, int]

    def canonical(self, event: bytes) -> bytes:
        """Rewrites an event (without its checksum) to today's layout.

        Raises:
            CorruptBinlog: it is shorter than its header or its fixed part.
        """
        kind = event[4]
        # Like the format description itself, a ROTATE never has what later versions add to headers.
        header = min(self.header, HEADER) if kind == ROTATE else self.header
        body = event[header:]
        fixed = self.fixed.get(kind)
        if len(event) < header or (fixed is not None and len(body) < fixed):
            raise CorruptBinlog("an event is shorter than its fixed part")
        if fixed is not None:
            body = _rewritten_body(kind, fixed, body)
        rest_of_header = event[POSITION_AT:HEADER] if self.version > 1 else bytes(HEADER - POSITION_AT)
        return event[:SIZE_AT] + struct.pack("<I", HEADER + len(body)) + rest_of_header + body


def _rewritten_body(kind: int, fixed: int, body: bytes) -> bytes:
    if kind == ROTATE and fixed == 0:
        return FILE_START + body
    if kind == QUERY and fixed == OLDEST_QUERY:
        return body[:OLDEST_QUERY] + bytes(2) + body[OLDEST_QUERY:]
    if fixed == SHORT_IDS:
        return body[:4] + bytes(2) + body[4:]
    return body[: POST_HEADERS[kind]] + body[fixed:]


def described_dialect(header: int, lengths: bytes) -> Dialect | None:
    """The layout that a FORMAT_DESCRIPTION event describes.

    Args:
        header: bytes of a header.
        lengths: lengths of the fixed parts, type 1 first; 0: the server does not write the type.

    Returns:
        None if it is today's layout.

    Raises:
        Unsupported: a header or a fixed part is too short.
    """
    if header < HEADER:
        raise Unsupported("events have a shorter header than is known", header_bytes=header)
    fixed = {}
    for kind, size in POST_HEADERS.items():
        found = lengths[kind - 1] if kind <= len(lengths) else size
        if found in {0, size}:
            continue
        if found < size and found != SHORTER.get(kind):
            raise Unsupported("events of a type have a fixed part of an unknown length", type=kind, fixed_bytes=found)
        fixed[kind] = found
    return Dialect(4, header, fixed) if fixed or header != HEADER else None


def old_dialect(start: bytes) -> Dialect:
    """The layout of a log of version 1 or 3, from its first event, START_V3.

    Args:
        start: the whole event.

    Raises:
        Unsupported: another version.
        CorruptBinlog: its length is not that of its version.
    """
    header = OLDEST_HEADER if len(start) < HEADER + START_BODY else HEADER
    if len(start) != header + START_BODY:
        raise CorruptBinlog("the event that begins a log of version 1 or 3 has an impossible length")
    version = int.from_bytes(start[header : header + 2], "little")
    server = start[header + 2 : header + 52].rstrip(b"\0").decode(errors="replace")
    if version == 2:
        raise Unsupported(
            "a binary log of version 2, which only 4.0.0 and 4.0.1 wrote, in an undocumented format",
            server=server,
            version=version,
        )
    if (version, header) not in {(1, OLDEST_HEADER), (3, HEADER)}:
        raise Unsupported(
            "a binary log of an unknown version or header length", server=server, version=version, header_bytes=header
        )
    return Dialect(version, header, {QUERY: OLDEST_QUERY, ROTATE: 0} if version == 1 else {QUERY: OLDEST_QUERY})
