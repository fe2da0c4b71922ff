"""Reads the values of a column as the log has them, to find those that a narrower type would change."""

from __future__ import annotations

from collections.abc import Iterator

from connector.ddl.syntax.tokens import quoted
from connector.ddl.syntax.type_names import INTEGERS
from connector.log.transaction.layout import Column, TableName
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.sql.names import table_name
from connector.targets.types import BYTES, parse


def values_of(session: ServerSession, table: TableName, column: Column) -> Iterator[int | float | str | bytes]:
    """The different values of a column that are not NULL."""
    name, base = quoted(column.name), parse(column.type).base
    for (raw,) in session.rows(
        f"SELECT DISTINCT CAST({name} AS BINARY) FROM {table_name(table)} WHERE {name} IS NOT NULL"
        if base in BYTES or base == "bit"
        else f"SELECT DISTINCT CAST(CONVERT({name} USING utf8mb4) AS BINARY) FROM {table_name(table)} "
        f"WHERE {name} IS NOT NULL"
    ):
        if base in BYTES or base == "bit":
            yield bytes(raw)
            continue
        text = bytes(raw).decode()
        yield int(text) if base in INTEGERS and abs(int(text)) < 1 << 63 else text
