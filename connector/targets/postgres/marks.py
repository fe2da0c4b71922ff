"""Marks in PostgreSQL: a table in the schema `thl` with the keys of a table that were written since its load began."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from connector.errors import PreflightError
from connector.targets.marks import Marks
from connector.targets.names import quoted
from connector.targets.postgres.catalog_checks import takes_upserts, unique_indexes
from connector.targets.postgres.names import column_name, table_name
from connector.targets.postgres.types import postgres_type
from connector.targets.table import Table


def marks_name(marks: str) -> str:
    """The quoted name of a table of marks."""
    return f"thl.{quoted(marks)}"


def create_marks(marks: str, table: Table) -> str:
    """The statement that creates the marks for a table."""
    columns = [
        f"k{place} {postgres_type(table.columns[index], key=True)}" for place, index in enumerate(table.layout.key)
    ]
    key = ", ".join(f"k{place}" for place in range(len(columns)))
    return f"CREATE TABLE {marks_name(marks)} ({', '.join(columns)}, PRIMARY KEY ({key}))"


def check_privilege(session: psycopg.Connection) -> None:
    """Check that the account may create marks.

    Raises:
        PreflightError: it may not.
    """
    if session.execute("SELECT has_schema_privilege('thl', 'CREATE')").fetchone() != (True,):
        raise PreflightError(
            "the load of a table that has rows needs a table in schema thl, which the account may not create",
            hint="GRANT CREATE, USAGE ON SCHEMA thl TO …",
        )


def marks_of(session: psycopg.Connection, table: Table, name: str) -> Marks:
    """The marks of a table, with the unique indexes that it has at the moment."""
    index = {column_name(column.name): place for place, column in enumerate(table.columns)}
    unique_keys = tuple(
        tuple(index[quoted(name)] for name in one)
        for one in unique_indexes(session, table.name)
        if all(quoted(name) in index for name in one)
    )
    return Marks(name, table.layout.key, unique_keys, takes_upserts(session, table))


def is_marked(marks: str, columns: Iterable[str]) -> str:
    """The condition that a key is marked, whose columns have these names."""
    same = " AND ".join(f"k.k{place} = {column}" for place, column in enumerate(columns))
    return f"EXISTS (SELECT FROM {marks_name(marks)} k WHERE {same})"


def sweep(table: Table, marks: str) -> str:
    """The statement that deletes the rows whose keys are not marked."""
    key = (f"t.{column_name(name)}" for name in table.key)
    return f"DELETE FROM {table_name(table.name)} t WHERE NOT {is_marked(marks, key)}"
