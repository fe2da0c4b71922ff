"""Keys of rows that the log changes and a SQLite table lacks; read only after a wrong row count."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from connector.log.transaction.layout import TableLayout
from connector.targets.names import SqliteNames
from connector.targets.operations import Value
from connector.targets.sqlite.ddl import quoted, table_name

NAMED: Final = 5
Key = Sequence[Value]


def missing_rows(
    connection: sqlite3.Connection, layout: TableLayout, keys: Sequence[Key], lacking: int, *, deleted: bool
) -> str:
    """Some of the keys that the table lacks; "" if they are not known.

    Args:
        connection: in the open transaction that changed the rows.
        layout: the table's, with a key.
        keys: the keys of the rows to change.
        lacking: the number of rows that were not found.
        deleted: the rows were deleted, so the last commit is read instead. It lacks earlier changes of the same
            transaction: if the number of missing rows there differs, no key is named.
    """
    if not deleted:
        return _named(layout, _absent(connection, layout, keys), lacking)
    (file,) = connection.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()
    with closing(sqlite3.connect(file)) as committed:
        exists = committed.execute("SELECT 1 FROM sqlite_master WHERE name = ?", SqliteNames().table(layout.name))
        return _named(layout, _absent(committed, layout, keys), lacking) if exists.fetchone() else ""


def shown(layout: TableLayout, key: Key) -> str:
    """A key as text for error messages."""
    names = [layout.columns[index].name for index in layout.key]
    return ", ".join(f"{name}={value!r:.100}" for name, value in zip(names, key, strict=True))


def _absent(connection: sqlite3.Connection, layout: TableLayout, keys: Sequence[Key]) -> list[Key]:
    matches = " AND ".join(f"{quoted(layout.columns[index].name)} = ?" for index in layout.key)
    query = f"SELECT 1 FROM {table_name(layout.name)} WHERE {matches}"
    return [key for key in keys if connection.execute(query, key).fetchone() is None]


def _named(layout: TableLayout, absent: Sequence[Key], lacking: int) -> str:
    return "; ".join(shown(layout, key) for key in absent[:NAMED]) if len(absent) == lacking else ""
