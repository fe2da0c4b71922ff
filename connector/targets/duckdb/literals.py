"""Values as SQL expressions of DuckDB."""

from __future__ import annotations

from connector.log.transaction.layout import Column
from connector.targets.duckdb.types import Form, duckdb_type, form_of, typed
from connector.targets.operations import Value


def literal(value: Value) -> str:
    """A value as an expression of its own kind."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"from_hex('{value.hex()}')"
    if isinstance(value, str):
        if "\0" in value:  # which would end the statement
            return f"decode(from_hex('{value.encode().hex()}'))"
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    return repr(value)


def column_literal(column: Column, value: Value) -> str:
    """A value of the log as an expression of a column's type."""
    if form_of(column) is Form.BITS and isinstance(value, bytes):
        value = bits(column, value)
    return f"CAST({typed(column, literal(value))} AS {duckdb_type(column)})"


def bits(column: Column, value: bytes) -> str:
    """The digits of a BIT value."""
    return f"{int.from_bytes(value, 'big'):0{column.type.partition('(')[2].removesuffix(')')}b}"
