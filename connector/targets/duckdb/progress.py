"""Reads the progress of a DuckDB target from outside; claims nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from connector.clock import SystemClock
from connector.log.transaction.layout import TableName
from connector.targets.duckdb.errors import translated
from connector.targets.duckdb.file import FileSession, opened_to_read
from connector.targets.duckdb.names import quoted
from connector.targets.position import COLUMNS, REASONS, SAME_TABLE, TargetRow, target_row

WAIT_SECONDS: Final = 30.0

_TABLES: Final = """
SELECT 1 FROM duckdb_tables() WHERE database_name = current_catalog() AND schema_name = 'thl' AND table_name = ?
"""


def read_position(path: Path, service: str) -> TargetRow | None:
    """Read the position of a service; None: nothing was applied yet."""
    if not path.exists():
        return None
    with opened_to_read(path, SystemClock(), wait=WAIT_SECONDS) as session, translated():
        if not _has(session, "thl_position"):
            return None
        prefix = session.bookkeeping
        found = session.run(f"SELECT {COLUMNS} FROM {prefix}thl_position WHERE service = ?", (service,))
        if not found:
            return None
        known = all(_has(session, name) for name in ("thl_rewound", "thl_excluded", "thl_inconsistent"))
        return target_row(found[0], session.run(REASONS.format(prefix, "$1"), (service,)) if known else [])


def read_heartbeat(path: Path, service: str, table: TableName, name: str) -> str | None:
    """Read the time of the newest heartbeat of a name, as the target's text; None: there is none."""
    if not path.exists():
        return None
    with opened_to_read(path, SystemClock(), wait=WAIT_SECONDS) as session, translated():
        if not _has(session, "thl_tables"):
            return None
        query = f"SELECT schema_name, table_name FROM {session.bookkeeping}thl_tables WHERE {SAME_TABLE.format('?')}"
        found = session.run(query, (service, table.schema, table.table))
        if not found:
            return None
        heartbeats = session.name(TableName(str(found[0][0]), str(found[0][1])))
        query = f"SELECT strftime({quoted('written')}, '%Y-%m-%d %H:%M:%S.%f') FROM {heartbeats}"
        rows = session.run(f"{query} WHERE service = ? AND name = ?", (service, name))
    return None if not rows else str(rows[0][0])


def _has(session: FileSession, table: str) -> bool:
    return bool(session.run(_TABLES, (table,)))
