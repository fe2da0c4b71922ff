"""Rows that the log changes and a table of SQLite does not have, by key: asked only once a count was wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from connector.log.transaction.layout import TableLayout
from connector.targets.names import SqliteNaming
from connector.targets.operations import Value
from connector.targets.sqlite.ddl import quoted, table_name

NAMED: Final = 5
Key = Sequence[Value]


def missing_rows(
    connection: sqlite3.Connection, layout: TableLayout, keys: Sequence[Key], lacking: int, *, deleted: bool
) -> str:
    """Those of these keys that the table does not have, a few of them; empty where that cannot be told.

    Args:
        connection: in the open transaction, in which the rows were changed.
        layout: the table's, with a key.
        keys: of the rows that were to be changed.
        lacking: how many of them were not.
        deleted: so those that were there are gone. Then the last commit is looked at, which does not know what came in
            the same transaction before: where another number is missing there, nobody is named.
    """
    if not deleted:
        return _named(layout, _absent(connection, layout, keys), lacking)
    (file,) = connection.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()
    with closing(sqlite3.connect(file)) as committed:
        there = committed.execute("SELECT 1 FROM sqlite_master WHERE name = ?", SqliteNaming().table(layout.name))
        return _named(layout, _absent(committed, layout, keys), lacking) if there.fetchone() else ""


def shown(layout: TableLayout, key: Key) -> str:
    """A key, for people."""
    names = [layout.columns[index].name for index in layout.key]
    return ", ".join(f"{name}={value!r:.100}" for name, value in zip(names, key, strict=True))


def _absent(connection: sqlite3.Connection, layout: TableLayout, keys: Sequence[Key]) -> list[Key]:
    matches = " AND ".join(f"{quoted(layout.columns[index].name)} = ?" for index in layout.key)
    query = f"SELECT 1 FROM {table_name(layout.name)} WHERE {matches}"
    return [key for key in keys if connection.execute(query, key).fetchone() is None]


def _named(layout: TableLayout, absent: Sequence[Key], lacking: int) -> str:
    return "; ".join(shown(layout, key) for key in absent[:NAMED]) if len(absent) == lacking else ""
