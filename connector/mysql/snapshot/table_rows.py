"""Streams rows of one table from the server into Avro.

pymysql sends the statement and reads the column definitions; rows are read from its socket in chunks and decoded in
compiled code. The connection is usable again after the last batch.

The server does not convert text: it would silently replace characters that UTF-8 lacks by `?`.
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
from connector.mysql.snapshot.key_ranges import Keys
from connector.mysql.values.text_rows import ServerError, TextRows

RECEIVE_BYTES: Final = 1 << 18


def table_rows(
    connection: Connection, table: SourceTable, within: Keys, max_rows: int, max_bytes: int
) -> Iterator[tuple[bytearray, array[int]]]:
    """Reads a chunk of a table in batches of Avro `Row` records and their ends.

    Args:
        connection: idle; must not be used before the iterator is exhausted.
        table: the table.
        within: the keys of the rows.
        max_rows: maximum rows of a batch.
        max_bytes: a batch ends with the row that reaches them.

    Raises:
        pymysql.MySQLError: the server refused or is gone.
        CorruptBinlog: its answer contradicts the protocol.
        ValueNotRepresentable: a text is not valid in its character set.
    """
    inner = cast(Any, connection)
    inner.query("SET SESSION character_set_results = NULL")
    inner.query(table.sql(within), unbuffered=True)
    result = inner._result
    if result.field_count != len(table.kinds):
        raise CorruptBinlog("the source answers with other columns", table=table.layout.name, got=result.field_count)
    # The answer is read here; for pymysql it is finished.
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
    """Reads available bytes, at least `least`; a large row at once, so that it is joined only once."""
    stream = connection._rfile
    data = cast(bytes, stream.read(least) if least > RECEIVE_BYTES else stream.read1(RECEIVE_BYTES))
    if not data or (least > RECEIVE_BYTES and len(data) < least):
        raise pymysql.OperationalError(CR.CR_SERVER_LOST, "the connection was closed inside of a table's rows")
    return data
