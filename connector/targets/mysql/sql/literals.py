"""Single values as literals, and conditions that rows have them; `sql_values` writes whole images."""

from __future__ import annotations

from collections.abc import Sequence

from connector.ddl.syntax.tokens import quoted
from connector.errors import ValueNotRepresentable
from connector.log.transaction.layout import Column, TableLayout
from connector.targets.mysql.sql.json_exact import json_literal
from connector.targets.mysql.sql.names import text_literal
from connector.targets.mysql.sql.sql_values import LiteralKind
from connector.targets.mysql.sql.types import literal_kind
from connector.targets.operations import Value
from connector.targets.types import parse


def literal(value: Value | bool) -> str:
    """A value of the bookkeeping as a literal; `value_literal` is for those of the log."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return text_literal(value) if isinstance(value, str) else repr(value)


def value_literal(column: Column, value: Value, *, mariadb: bool) -> str:
    """A value as a literal of its column's type; see `sql_values`."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.16e}"
    kind = literal_kind(column, mariadb=mariadb)
    if isinstance(value, bytes):
        return str(int.from_bytes(value, "big")) if kind is LiteralKind.BITS else _bytes_literal(value)
    if kind is LiteralKind.NUMBER:
        text = str(value)
        if not text.lstrip("-").replace(".", "", 1).isdigit():
            raise ValueNotRepresentable(f"{text!r:.100} is no number", column=column.name)
        return text
    return json_literal(str(value)) if kind is LiteralKind.JSON else text_literal(str(value))


def _bytes_literal(value: bytes) -> str:
    return f"x'{value.hex()}'" if value else "_binary''"


def shown(layout: TableLayout, key: Sequence[Value]) -> str:
    """A key as text for error messages."""
    columns = (layout.columns[index].name for index in layout.key)
    return ", ".join(f"{name}={value!r:.100}" for name, value in zip(columns, key, strict=True))


def equals(columns: Sequence[Column], row: Sequence[Value], *, mariadb: bool) -> str:
    """The condition that a row has these values, byte for byte."""
    return " AND ".join(_equal(column, value, mariadb=mariadb) for column, value in zip(columns, row, strict=True))


def _equal(column: Column, value: Value, *, mariadb: bool) -> str:
    name, given = quoted(column.name), value_literal(column, value, mariadb=mariadb)
    if value is None:
        return f"{name} IS NULL"
    base = parse(column.type).base
    if isinstance(value, float):
        if value:
            return f"{name} = {given}"
        # The optimizer would put the literal in the column's place, had the condition a `=`: both zeros are equal.
        sign = "=" if str(value)[0] == "-" else "<>"
        return f"{name} >= 0 AND {name} <= 0 AND CAST({name} AS CHAR) {sign} '-0'"
    if base == "json":
        if mariadb:
            return f"CAST({name} AS BINARY) = CAST({given} AS BINARY)"
        return f"CAST({name} AS BINARY) = CAST(CAST({given} AS JSON) AS BINARY)"
    if base in ("geometry", "vector"):
        return f"HEX({name}) = HEX({given})"
    if literal_kind(column, mariadb=mariadb) is LiteralKind.TEXT and column.charset:
        return f"{name} = {given} AND CAST(CONVERT({name} USING utf8mb4) AS BINARY) = CAST({given} AS BINARY)"
    return f"{name} = {given}"
