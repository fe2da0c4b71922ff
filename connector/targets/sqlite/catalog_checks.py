"""Reads from the catalog what tables have besides their columns.

It can keep rows from being replaced by upserts, or from being deleted. Others have made it.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from connector.targets.ddl.loads import refuse_deletes
from connector.targets.sqlite.names import SqliteNames
from connector.targets.table import Table

_UNIQUE: Final = "SELECT name FROM pragma_index_list(?) WHERE [unique] AND origin <> 'pk'"
# The event of a trigger is in its statement alone, so each counts. Foreign keys act if the session has them on, which
# SQLite by default has not.
_ON_DELETE: Final = """
SELECT 'trigger ' || name FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = lower(:name)
UNION SELECT 'foreign key of ' || m.name FROM sqlite_master m, pragma_foreign_key_list(m.name) f
WHERE m.type = 'table' AND lower(f."table") = lower(:name) AND (SELECT foreign_keys FROM pragma_foreign_keys)
"""


def unique_indexes(connection: sqlite3.Connection, table: Table) -> list[list[str | None]]:
    """The columns, in lower case, of each unique index of a table but its primary key; None for an expression."""
    found = connection.execute(_UNIQUE, SqliteNames().table(table.name)).fetchall()
    query = "SELECT name FROM pragma_index_info(?) ORDER BY seqno"
    return [[column and column.lower() for (column,) in connection.execute(query, index)] for index in found]


def takes_upserts(connection: sqlite3.Connection, table: Table) -> bool:
    """True if a table has no unique index but its key's: its rows can then be replaced without deletes."""
    return not unique_indexes(connection, table)


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
