"""PostgreSQL's names, as SQL writes them."""

from __future__ import annotations

from collections.abc import Iterable

from connector.log.transaction.layout import TableName
from connector.targets.names import PostgresNaming

NAMING = PostgresNaming()


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def column_name(name: str) -> str:
    """A column's quoted name."""
    return quoted(NAMING.column(name))


def table_name(name: TableName) -> str:
    """A table's quoted name, with its schema."""
    return ".".join(quoted(part) for part in NAMING.table(name))


def column_names(names: Iterable[str]) -> str:
    """Quoted names with commas between."""
    return ", ".join(column_name(name) for name in names)
