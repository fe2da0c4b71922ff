"""Quoted names of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable

from connector.log.transaction.layout import TableName
from connector.targets.names import PostgresNames

NAMES = PostgresNames()


def quoted(name: str) -> str:
    """A quoted name."""
    return '"' + name.replace('"', '""') + '"'


def column_name(name: str) -> str:
    """A column's quoted name."""
    return quoted(NAMES.column(name))


def table_name(name: TableName) -> str:
    """A table's quoted name, with its schema."""
    return ".".join(quoted(part) for part in NAMES.table(name))


def column_names(names: Iterable[str]) -> str:
    """Quoted names of columns, separated by commas."""
    return ", ".join(column_name(name) for name in names)
