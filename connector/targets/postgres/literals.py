"""Values of the log as SQL expressions of PostgreSQL, and the DEFAULT of a column."""

from __future__ import annotations

from datetime import date
from typing import Final

from psycopg import sql

from connector.errors import ValueNotRepresentable
from connector.log.transaction.layout import Column
from connector.targets.operations import Value
from connector.targets.postgres.types import postgres_type
from connector.targets.table import Table
from connector.targets.types import fraction, parse

# MySQL's CURRENT_TIMESTAMP is the statement's time, and its fraction is cut off; a cast of PostgreSQL would round it.
_NOW: Final = {0: "second", 3: "milliseconds", 6: "microseconds"}


def constant(value: Value) -> str:
    """A value as a literal of PostgreSQL, without a type."""
    return sql.Literal(value).as_string(None)


def literal(column: Column, value: Value) -> str:
    """A value of the log as an SQL expression of the column's type."""
    kind = postgres_type(column)
    if isinstance(value, bytes) and kind.startswith("bit"):
        size = int(kind[4:-1])
        return f"B'{int.from_bytes(value, 'big'):0{size}b}'"
    if isinstance(value, str) and kind.endswith("with time zone") and column.type.startswith("timestamp"):
        value += "+00"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea"
    if isinstance(value, str) and "\0" in value:
        raise ValueNotRepresentable(f"column {column.name} gets U+0000, which PostgreSQL's text cannot store")
    text = repr(value) if isinstance(value, float) else str(value)
    return f"{constant(text)}::{kind}"


def default_of(table: Table, column: Column) -> str | None:
    """The DEFAULT of a column: the same value that the source gives.

    Returns:
        None if the definition has none, or PostgreSQL has no such value.
    """
    if column.name not in table.declared:
        return None
    values = table.defaults_of()
    if column.name not in values:
        unit = _NOW.get(fraction(column))
        return None if unit is None else f"date_trunc('{unit}', statement_timestamp())"
    value = values[column.name]
    return None if value is None or not _exists(column, value) else literal(column, value)


def _exists(column: Column, value: Value) -> bool:
    """True if PostgreSQL has the value: no zero date, no U+0000, no bytes that are no character."""
    if isinstance(value, str) and parse(column.type).base in ("date", "datetime", "timestamp"):
        try:
            date.fromisoformat(value[:10])
        except ValueError:
            return False
    return not (isinstance(value, str) and any(one == "\0" or "\ud800" <= one <= "\udfff" for one in value))
