"""Rows as a BINLOG statement: MySQL's own SQL for rows events.

It is exact for every type, column and image: no literal, default, generated column or trigger comes between. Each event
becomes a statement with its table's TABLE_MAP and ends there, so none is larger than an event of the log.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Final, NamedTuple

from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.mysql.binlog.events.event_types import FORMAT_DESCRIPTION, HEADER
from connector.mysql.binlog.events.mariadb import is_mariadb

TABLE_MAP, WRITE_ROWS, WRITE_ROWS_V1, PARTIAL_UPDATE_ROWS = 19, 30, 23, 39
STATEMENT_END: Final = 1
FIXED: Final = 8  # bytes of a table id and flags
LINE: Final = 76
NO_EXTRA_DATA: Final = b"\2\0"
VERSION, LENGTHS_AT = slice(HEADER, HEADER + 52), HEADER + 57  # in a format description
# MySQL 5.6's, which has both versions of rows events: its name, and the lengths of its fixed parts.
NEW_ENOUGH: Final = struct.pack("<H50s", 4, b"5.6.51")
LENGTHS: Final = bytes(
    (56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 92, 0, 4, 26, 8, 0, 0, 0, 8, 8, 8, 2, 0, 0, 0, 10, 10, 10, 25, 25, 0)
)


class RowsHeader(NamedTuple):
    """Facts of a rows event: of its header; the action's number, version 2 or 1, partial JSON or not."""

    timestamp: int
    server_id: int
    action: int
    second: bool
    diffs: bool


def binlog_statement(described: bytes, header: RowsHeader, table: bytes, rows: bytes) -> Statement:
    """Makes the statement.

    MySQL 8.4 and later refuse rows events of version 1, so a MySQL's become version 2.

    Args:
        described: the file's format description event.
        header: of the rows event.
        table: body of the TABLE_MAP event.
        rows: body of the rows event, expanded.
    """
    second, mariadb = header.second, is_mariadb(described)
    if not second and not mariadb:
        rows, second = rows[:FIXED] + NO_EXTRA_DATA + rows[FIXED:], True
    rows = rows[:6] + bytes([rows[6] | STATEMENT_END]) + rows[7:]
    code = PARTIAL_UPDATE_ROWS if header.diffs else header.action + (WRITE_ROWS if second else WRITE_ROWS_V1)
    events = _event(header, TABLE_MAP, table) + _event(header, code, rows)
    options = {replay.BINLOG_FORMAT: base64.b64encode(_without_checksums(described, mariadb=mariadb)).decode()}
    return Statement("", binlog(events), options)


def binlog(events: bytes) -> str:
    """A BINLOG statement of events."""
    text = base64.b64encode(events).decode()
    lines = "\n".join(text[at : at + LINE] for at in range(0, len(text), LINE))
    return f"BINLOG '\n{lines}\n'"


def _event(header: RowsHeader, code: int, body: bytes) -> bytes:
    size = HEADER + len(body)
    return struct.pack("<IBIIIH", header.timestamp, code, header.server_id, size, 0, 0) + body


def _without_checksums(described: bytes, *, mariadb: bool) -> bytes:
    """The format description of events without checksums and with today's headers.

    Its time is 0: with another one a server drops the temporary tables of the session.
    """
    version, lengths = described[VERSION], described[LENGTHS_AT:-5]
    if not mariadb and len(lengths) < len(LENGTHS):
        version, lengths = NEW_ENOUGH, LENGTHS
    body = version + bytes(4) + bytes([HEADER]) + lengths + b"\0"
    size = HEADER + len(body) + 4
    head = struct.pack("<IBIIIH", 0, FORMAT_DESCRIPTION, int.from_bytes(described[5:9], "little"), size, 0, 0)
    return head + body + struct.pack("<I", zlib.crc32(head + body))
