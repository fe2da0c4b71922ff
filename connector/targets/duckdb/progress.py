"""Reads the progress of a DuckDB target from outside; claims nothing."""

from __future__ import annotations

from pathlib import Path

from connector.clock import SystemClock
from connector.log.transaction.layout import TableName
from connector.targets.duckdb.errors import translated
from connector.targets.duckdb.file import opened_to_read
from connector.targets.names import quoted
from connector.targets.position import COLUMNS, SAME_TABLE, TargetRow, target_row


def read_position(path: Path, service: str) -> TargetRow | None:
    """Read the position of a service; None: nothing was applied yet."""
    if not path.exists():
        return None
    with opened_to_read(path, SystemClock()) as session, translated():
        if not session.has("thl_position"):
            return None
        prefix = session.bookkeeping
        found = session.run(f"SELECT {COLUMNS} FROM {prefix}thl_position WHERE service = ?", (service,))
        if not found:
            return None
        query = f"SELECT because FROM {prefix}thl_inconsistent_because WHERE service = ? ORDER BY 1"
        return target_row(found[0], session.run(query, (service,)) if session.has("thl_inconsistent_because") else [])


def read_heartbeat(path: Path, service: str, table: TableName, name: str) -> str | None:
    """Read the time of the newest heartbeat of a name, as the target's text; None: there is none."""
    if not path.exists():
        return None
    with opened_to_read(path, SystemClock()) as session, translated():
        if not session.has("thl_tables"):
            return None
        query = f"SELECT schema_name, table_name FROM {session.bookkeeping}thl_tables WHERE {SAME_TABLE.format('?')}"
        found = session.run(query, (service, table.schema, table.table))
        if not found:
            return None
        heartbeats = session.name(TableName(str(found[0][0]), str(found[0][1])))
        query = f"SELECT strftime({quoted('written')}, '%Y-%m-%d %H:%M:%S.%f') FROM {heartbeats}"
        rows = session.run(f"{query} WHERE service = ? AND name = ?", (service, name))
    return None if not rows else str(rows[0][0])
