"""Reads the progress of a SQLite target from outside; claims nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from connector.errors import TargetUnavailable
from connector.log.transaction.layout import TableName
from connector.targets.position import COLUMNS, SAME_TABLE, TargetRow, target_row


def read_position(path: Path, service: str) -> TargetRow | None:
    """Read the position of a service; None: nothing was applied yet."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if "thl_position" not in names:
                return None
            query = f"SELECT {COLUMNS} FROM thl_position WHERE service = ?"
            found = connection.execute(query, (service,)).fetchone()
            if found is None:
                return None
            query = "SELECT because FROM thl_inconsistent_because WHERE service = ? ORDER BY 1"
            known = "thl_inconsistent_because" in names
            return target_row(found, connection.execute(query, (service,)).fetchall() if known else [])
    except sqlite3.Error as error:
        raise TargetUnavailable(f"the target cannot be read: {error}", file=path) from error


def read_heartbeat(path: Path, service: str, table: TableName, name: str) -> str | None:
    """Read the time of the newest heartbeat of a name, as the target's text; None: there is none."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'thl_tables'").fetchone():
                return None
            found = connection.execute(
                f"SELECT target_name FROM thl_tables WHERE {SAME_TABLE.format('?')}",
                (service, table.schema, table.table),
            ).fetchone()
            if found is None:
                return None
            quoted = '"{}"'.format(str(found[0]).replace('"', '""'))
            row = connection.execute(
                f"SELECT written FROM {quoted} WHERE service = ? AND name = ?", (service, name)
            ).fetchone()
    except sqlite3.Error as error:
        raise TargetUnavailable(f"the target cannot be read: {error}", file=path) from error
    return None if row is None else str(row[0])
