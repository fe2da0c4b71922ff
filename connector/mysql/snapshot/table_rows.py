"""The rows of one table, streamed from the server into Avro.

pymysql sends the statement and reads the column definitions; the rows are taken from its socket in chunks and
decoded in compiled code. The connection is usable again when the last batch was taken.

The server is told not to convert text: it would make a `?` of everything that UTF-8 has not, and say nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final, cast

import pymysql
from pymysql.constants import CR

from connector.errors import CorruptBinlog, ValueNotRepresentable
from connector.mysql.server.connection import Connection
from connector.mysql.snapshot.information_schema import SourceTable
from connector.mysql.values.text_rows import ServerError, TextRows

CHUNK: Final = 1 << 18


def table_rows(
    connection: Connection, table: SourceTable, max_rows: int, max_bytes: int
) -> Iterator[tuple[bytearray, array[int]]]:
    """Read a table in batches of Avro `Row` records and their ends.

    Args:
        connection: with nothing under way; not to be used before this is exhausted.
        table: what to read.
        max_rows: of a batch.
        max_bytes: a batch ends with the row that reaches them.

    Raises:
        pymysql.MySQLError: the server refused or went away.
        CorruptBinlog: what it sent is not the protocol.
        ValueNotRepresentable: a text is not valid in its character set.
    """
    inner = cast(Any, connection)
    inner.query("SET SESSION character_set_results = NULL")
    inner.query(table.sql, unbuffered=True)
    result = inner._result
    if result.field_count != len(table.kinds):
        raise CorruptBinlog("the source answers with other columns", table=table.layout.name, got=result.field_count)
    # From here on the answer is ours; to pymysql it counts as read.
    result.unbuffered_active = False
    result.connection = None
    rows = TextRows(table.kinds, inner._next_seq_id, table.texts)
    try:
        while not rows.ended:
            missing = rows.decode(max_rows, max_bytes)
            if missing:
                rows.feed(_receive(inner, missing))
            elif rows.rows:
                yield rows.drain()
    except ValueNotRepresentable as error:
        column = table.layout.columns[rows.column]
        error.where |= {"table": table.layout.name, "column": column.name, "charset": column.charset}
        raise
    except ServerError as error:
        raise pymysql.OperationalError(error.code, error.text) from error
    inner.query(f"SET SESSION character_set_results = {inner.charset}")


def _receive(connection: Any, least: int) -> bytes:
    """What is there, but at least `least` bytes; a large row at once, so that it is joined only once."""
    stream = connection._rfile
    data = cast(bytes, stream.read(least) if least > CHUNK else stream.read1(CHUNK))
    if not data or (least > CHUNK and len(data) < least):
        raise pymysql.OperationalError(CR.CR_SERVER_LOST, "the connection was closed within the rows of a table")
    return data
