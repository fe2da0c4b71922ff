"""Marks in SQLite: a table with the keys of another table that were written since its load began."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from connector.targets.marks import Marks
from connector.targets.names import quoted
from connector.targets.sqlite.catalog_checks import unique_indexes
from connector.targets.sqlite.names import table_name
from connector.targets.sqlite.types import sqlite_type
from connector.targets.table import Table


def create_marks(marks: str, table: Table) -> str:
    """The statement that creates the marks for a table."""
    places = range(len(table.layout.key))
    columns = [f"k{place} {sqlite_type(table.columns[table.layout.key[place]])} NOT NULL" for place in places]
    key = ", ".join(f"k{place}" for place in places)
    return f"CREATE TABLE {quoted(marks)} ({', '.join(columns)}, PRIMARY KEY ({key})) STRICT, WITHOUT ROWID"


def marks_of(connection: sqlite3.Connection, table: Table, name: str) -> Marks:
    """The marks of a table, with the unique indexes that it has at the moment; one on an expression is left out."""
    index = {column.name.lower(): place for place, column in enumerate(table.columns)}
    indexes = unique_indexes(connection, table)
    unique_keys = tuple(
        tuple(index[column] for column in columns if column is not None)
        for columns in indexes
        if all(column in index for column in columns)
    )
    return Marks(name, table.layout.key, unique_keys, not indexes)


def sweep(table: Table, marks: str) -> str:
    """The statement that deletes the rows whose keys are not marked."""
    name = table_name(table.name)
    return f"DELETE FROM {name} AS t WHERE NOT {is_marked(marks, (f't.{quoted(column)}' for column in table.key))}"


def is_marked(marks: str, values: Iterable[str]) -> str:
    """The condition that a key of these values is marked."""
    same = " AND ".join(f"k.k{place} = {value}" for place, value in enumerate(values))
    return f"EXISTS (SELECT 1 FROM {quoted(marks)} AS k WHERE {same})"
