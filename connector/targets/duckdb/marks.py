"""Marks in DuckDB: a table in the schema `thl` with the keys of a table that were written since its load began."""

from __future__ import annotations

from collections.abc import Iterable

from connector.targets.duckdb.catalog_checks import takes_upserts, unique_indexes
from connector.targets.duckdb.file import FileSession
from connector.targets.duckdb.names import NAMES
from connector.targets.duckdb.types import duckdb_type
from connector.targets.marks import Marks
from connector.targets.names import quoted
from connector.targets.table import Table


def create_marks(session: FileSession, marks: str, table: Table) -> str:
    """The statement that creates the marks for a table."""
    columns = [f"k{place} {duckdb_type(table.columns[index])}" for place, index in enumerate(table.layout.key)]
    return f"CREATE TABLE {session.bookkeeping}{quoted(marks)} ({', '.join(columns)})"


def marks_of(session: FileSession, table: Table, name: str) -> Marks:
    """The marks of a table, with the unique indexes that it has at the moment; one on an expression is left out."""
    index = {NAMES.fold(column.name): place for place, column in enumerate(table.columns)}
    unique_keys = []
    for one in unique_indexes(session, table):
        columns = [NAMES.fold(column) for column in one]
        if all(column in index for column in columns):
            unique_keys.append(tuple(index[column] for column in columns))
    return Marks(name, table.layout.key, tuple(unique_keys), takes_upserts(session, table))


def sweep(session: FileSession, table: Table, marks: str) -> str:
    """The statement that deletes the rows whose keys are not marked."""
    key = (f"t.{quoted(column)}" for column in table.key)
    return f"DELETE FROM {session.name(table.name)} AS t WHERE NOT {is_marked(session, marks, key)}"


def is_marked(session: FileSession, marks: str, values: Iterable[str]) -> str:
    """The condition that a key of these values is marked."""
    same = " AND ".join(f"k.k{place} = {value}" for place, value in enumerate(values))
    return f"EXISTS (SELECT 1 FROM {session.bookkeeping}{quoted(marks)} AS k WHERE {same})"
