"""Looks for the date 0000-00-00 in captured columns that no rule changes, because some targets lack it.

The look is bounded: defaults; an indexed column as a whole, through its index; of other columns the first rows. So it
can show that there is one, and never that there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from connector.clock import Clock
from connector.config.source import Source
from connector.ddl.nullable_columns import DATES
from connector.ddl.syntax.tokens import quoted
from connector.errors import ConnectorError
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import Connection, query, source_errors
from connector.mysql.transforms.filters import SYSTEM_SCHEMAS, TABLES_WITH_ROWS, Filter
from connector.mysql.transforms.table_rules import RuledColumns

FIRST_ROWS: Final = 1_000  # of a table
SECONDS: Final = 2.0  # for all tables
_ZERO: Final = "0000-00-00"
_STRICT: Final = frozenset({"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"})
_COLUMNS: Final = (
    "SELECT c.TABLE_SCHEMA AS s, c.TABLE_NAME AS t, c.COLUMN_NAME AS c, c.COLUMN_DEFAULT AS d, c.COLUMN_KEY AS k,"
    " (SELECT MIN(i.INDEX_NAME) FROM information_schema.STATISTICS i WHERE i.TABLE_SCHEMA = c.TABLE_SCHEMA"
    " AND i.TABLE_NAME = c.TABLE_NAME AND i.COLUMN_NAME = c.COLUMN_NAME AND i.SEQ_IN_INDEX = 1"
    " AND i.INDEX_TYPE = 'BTREE') AS i"
    " FROM information_schema.COLUMNS c JOIN information_schema.TABLES t"
    " ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME"
    f" WHERE {TABLES_WITH_ROWS} AND c.DATA_TYPE IN ({', '.join(map(repr, DATES))})"
    " ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION"
)


@dataclass(frozen=True, slots=True)
class DateColumn:
    """A captured column whose zero dates are published as such.

    Args:
        table: the table.
        name: the column.
        default: its default, as the server prints it.
        index: an index that begins with it; None: there is none.
    """

    table: TableName
    name: str
    default: str
    index: str | None

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"


@dataclass(slots=True)
class ZeroDates:
    """The columns of dates, by what was seen of zero dates in them.

    Args:
        accepted: true if a session with the server's sql_mode may write a zero date.
        in_rows: columns with a row that has one.
        in_defaults: other columns whose default is one.
        not_seen: other columns that were looked at.
        not_read: columns for which there was no time, no privilege or no lock.
    """

    accepted: bool
    in_rows: list[DateColumn] = field(default_factory=list)
    in_defaults: list[DateColumn] = field(default_factory=list)
    not_seen: list[DateColumn] = field(default_factory=list)
    not_read: list[DateColumn] = field(default_factory=list)


def zero_dates(connection: Connection, source: Source, filter: Filter, clock: Clock) -> ZeroDates:
    """Look for zero dates, for at most about `SECONDS`.

    Raises:
        SourceUnavailable: the source does not answer.
    """
    with source_errors(source):
        modes = set(str(query(connection, "SELECT @@GLOBAL.sql_mode AS m")[0]["m"]).split(","))
        query(connection, "SET SESSION lock_wait_timeout = 1")
        columns = list(_columns(connection, filter))
    found = ZeroDates(accepted="NO_ZERO_DATE" not in modes or not modes & _STRICT)
    deadline = clock.monotonic() + SECONDS
    for column in columns:
        try:
            with source_errors(source):
                seen = _is_in_rows(connection, column) if clock.monotonic() < deadline else None
        except ConnectorError as error:
            if error.retry:
                raise
            seen = None
        if seen:
            found.in_rows.append(column)
        elif column.default.strip("'").startswith(_ZERO):
            found.in_defaults.append(column)
        else:
            (found.not_read if seen is None else found.not_seen).append(column)
    return found


def _columns(connection: Connection, filter: Filter) -> Iterator[DateColumn]:
    for row in query(connection, _COLUMNS):
        name = TableName(row["s"], row["t"])
        if name.schema in SYSTEM_SCHEMAS or not filter.captures(*name):
            continue
        rule = filter.rule(*name)
        treated = (None, False) if rule is None else RuledColumns(rule).treats(row["c"])
        if treated == (None, False) or (treated == (None, True) and row["k"] == "PRI"):  # keys keep zero dates
            yield DateColumn(name, row["c"], str(row["d"] or ""), row["i"])


def _is_in_rows(connection: Connection, column: DateColumn) -> bool:
    table, name = f"{quoted(column.table.schema)}.{quoted(column.table.table)}", quoted(column.name)
    if column.index is not None:
        rows = f"{table} FORCE INDEX ({quoted(column.index)})"
    else:
        rows = f"(SELECT {name} FROM {table} LIMIT {FIRST_ROWS}) AS first_rows"
    return bool(query(connection, f"SELECT 1 AS found FROM {rows} WHERE {name} = '{_ZERO}' LIMIT 1"))
