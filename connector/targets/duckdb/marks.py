"""Marks in DuckDB: a table in the schema `thl` with the keys of a table that were written since its load began."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from connector.targets.ddl.loads import refuse_deletes
from connector.targets.duckdb.file import FileSession
from connector.targets.duckdb.names import NAMES, quoted
from connector.targets.duckdb.types import duckdb_type
from connector.targets.marks import Marks
from connector.targets.table import Table

# lower() makes more names equal than DuckDB does, which does not matter here.
_OF: Final = "database_name = current_catalog() AND lower(schema_name) = lower(?) AND lower({table}) = lower(?)".format
_INDEXES: Final = f"SELECT expressions FROM duckdb_indexes() WHERE is_unique AND {_OF(table='table_name')}"
_CONSTRAINTS: Final = f"""
SELECT constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'UNIQUE' AND {_OF(table="table_name")}
"""
_TRIGGERS: Final = f"""
SELECT DISTINCT trigger_name FROM duckdb_triggers() WHERE event_manipulation = 'DELETE' AND {_OF(table="table_name")}
"""


def create_marks(session: FileSession, marks: str, table: Table) -> str:
    """The statement that creates the marks for a table."""
    columns = [f"k{place} {duckdb_type(table.columns[index])}" for place, index in enumerate(table.layout.key)]
    return f"CREATE TABLE {session.bookkeeping}{quoted(marks)} ({', '.join(columns)})"


def marks_of(session: FileSession, table: Table, name: str) -> Marks:
    """The marks of a table, with the unique indexes that it has at the moment; one on an expression is left out."""
    index = {NAMES.fold(column.name): place for place, column in enumerate(table.columns)}
    unique_keys = []
    for one in _unique_keys(session, table):
        columns = [NAMES.fold(column) for column in one]
        if all(column in index for column in columns):
            unique_keys.append(tuple(index[column] for column in columns))
    return Marks(name, table.layout.key, tuple(unique_keys), takes_upserts(session, table))


def takes_upserts(session: FileSession, table: Table) -> bool:
    """True if a table has no unique index: its rows can then be replaced without deletes."""
    return not _unique_keys(session, table)


def check_deletes(session: FileSession, table: Table, in_place: bool = False) -> None:
    """Check that no trigger of others acts on deletes of a table's rows. Foreign keys of DuckDB do not act.

    Args:
        session: with the file.
        table: the table.
        in_place: it is no error if rows can be replaced without deletes.

    Raises:
        TargetDiffers: one does.
    """
    if not (in_place and takes_upserts(session, table)):
        found = session.run(_TRIGGERS, NAMES.table(table.name))
        refuse_deletes(table, [f"trigger {name}" for (name,) in found])


def sweep(session: FileSession, table: Table, marks: str) -> str:
    """The statement that deletes the rows whose keys are not marked."""
    key = (f"t.{quoted(column)}" for column in table.key)
    return f"DELETE FROM {session.name(table.name)} AS t WHERE NOT {is_marked(session, marks, key)}"


def is_marked(session: FileSession, marks: str, values: Iterable[str]) -> str:
    """The condition that a key of these values is marked."""
    same = " AND ".join(f"k.k{place} = {value}" for place, value in enumerate(values))
    return f"EXISTS (SELECT 1 FROM {session.bookkeeping}{quoted(marks)} AS k WHERE {same})"


def _unique_keys(session: FileSession, table: Table) -> list[list[str]]:
    """The columns of each unique index and constraint, but the primary key's."""
    name = NAMES.table(table.name)
    indexes = [_columns(str(text)) for (text,) in session.run(_INDEXES, name)]
    return indexes + [[str(column) for column in columns] for (columns,) in session.run(_CONSTRAINTS, name)]  # type: ignore[attr-defined]


def _columns(expressions: str) -> list[str]:
    """The columns in the text of an index's expressions: `['"a b"', c]`."""
    parts = [part.strip().strip("'") for part in expressions.removeprefix("[").removesuffix("]").split(",")]
    return [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]
