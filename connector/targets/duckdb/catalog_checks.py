"""Reads from the catalog what tables have besides their columns.

It can keep rows from being replaced by upserts, or from being deleted. Others have made it.
"""

from __future__ import annotations

from typing import Final

from connector.targets.ddl.loads import refuse_deletes
from connector.targets.duckdb.file import FileSession
from connector.targets.duckdb.names import NAMES
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


def unique_indexes(session: FileSession, table: Table) -> list[list[str]]:
    """The columns of each unique index and constraint, but the primary key's."""
    name = NAMES.table(table.name)
    indexes = [_columns(str(text)) for (text,) in session.run(_INDEXES, name)]
    return indexes + [[str(column) for column in columns] for (columns,) in session.run(_CONSTRAINTS, name)]  # type: ignore[attr-defined]


def takes_upserts(session: FileSession, table: Table) -> bool:
    """True if a table has no unique index: its rows can then be replaced without deletes."""
    return not unique_indexes(session, table)


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


def _columns(expressions: str) -> list[str]:
    """The columns in the text of an index's expressions: `['"a b"', c]`."""
    parts = [part.strip().strip("'") for part in expressions.removeprefix("[").removesuffix("]").split(",")]
    return [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]
