"""Marks in SQLite: a table with the keys of another table that were written since its load began."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from connector.targets.ddl.loads import refuse_deletes
from connector.targets.marks import Marks
from connector.targets.sqlite.names import SqliteNames, quoted, table_name
from connector.targets.sqlite.types import sqlite_type
from connector.targets.table import Table

# The event of a trigger is in its statement alone, so each counts. Foreign keys act if the session has them on, which
# SQLite by default has not.
_ON_DELETE: Final = """
SELECT 'trigger ' || name FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = lower(:name)
UNION SELECT 'foreign key of ' || m.name FROM sqlite_master m, pragma_foreign_key_list(m.name) f
WHERE m.type = 'table' AND lower(f."table") = lower(:name) AND (SELECT foreign_keys FROM pragma_foreign_keys)
"""


def create_marks(marks: str, table: Table) -> str:
    """The statement that creates the marks for a table."""
    places = range(len(table.layout.key))
    columns = [f"k{place} {sqlite_type(table.columns[table.layout.key[place]])} NOT NULL" for place in places]
    key = ", ".join(f"k{place}" for place in places)
    return f"CREATE TABLE {quoted(marks)} ({', '.join(columns)}, PRIMARY KEY ({key})) STRICT, WITHOUT ROWID"


def marks_of(connection: sqlite3.Connection, table: Table, name: str) -> Marks:
    """The marks of a table, with the unique indexes that it has at the moment; one on an expression is left out."""
    index = {column.name.lower(): place for place, column in enumerate(table.columns)}
    unique_keys = []
    query = "SELECT name FROM pragma_index_list(?) WHERE [unique] AND origin <> 'pk'"
    for (index_name,) in connection.execute(query, SqliteNames().table(table.name)).fetchall():
        found = connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index_name,)).fetchall()
        if all(column is not None and column.lower() in index for (column,) in found):
            unique_keys.append(tuple(index[column.lower()] for (column,) in found))
    return Marks(name, table.layout.key, tuple(unique_keys), takes_upserts(connection, table))


def takes_upserts(connection: sqlite3.Connection, table: Table) -> bool:
    """True if a table has no unique index but its key's: its rows can then be replaced without deletes."""
    query = "SELECT 1 FROM pragma_index_list(?) WHERE [unique] AND origin <> 'pk'"
    return connection.execute(query, SqliteNames().table(table.name)).fetchone() is None


def check_deletes(connection: sqlite3.Connection, table: Table, in_place: bool = False) -> None:
    """Check that no foreign key or trigger of others acts on deletes of a table's rows.

    Args:
        connection: to the file.
        table: the table.
        in_place: it is no error if rows can be replaced without deletes.

    Raises:
        TargetDiffers: one does.
    """
    if not (in_place and takes_upserts(connection, table)):
        found = connection.execute(_ON_DELETE, {"name": SqliteNames().table(table.name)[0]}).fetchall()
        refuse_deletes(table, [what for (what,) in found])


def sweep(table: Table, marks: str) -> str:
    """The statement that deletes the rows whose keys are not marked."""
    name = table_name(table.name)
    return f"DELETE FROM {name} AS t WHERE NOT {is_marked(marks, (f't.{quoted(column)}' for column in table.key))}"


def is_marked(marks: str, values: Iterable[str]) -> str:
    """The condition that a key of these values is marked."""
    same = " AND ".join(f"k.k{place} = {value}" for place, value in enumerate(values))
    return f"EXISTS (SELECT 1 FROM {quoted(marks)} AS k WHERE {same})"
