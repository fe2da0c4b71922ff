"""Reads the progress of a MySQL target from outside; claims nothing."""

from __future__ import annotations

from connector.ddl.syntax.tokens import quoted
from connector.log.transaction.layout import TableName
from connector.targets.mysql.fence import applier_number
from connector.targets.mysql.signal_table import MySqlSignalSession
from connector.targets.position import COLUMNS, SAME_TABLE, TargetRow, target_row


def read_position(url: str, service: str) -> TargetRow | None:
    """Read the position of a service; None: nothing was applied yet."""
    session = MySqlSignalSession(url)
    try:
        if not session.has("thl_position"):
            return None
        found = session.run(f"SELECT {COLUMNS} FROM thl.thl_position WHERE service = ?", (service,))
        if not found:
            return None
        query = "SELECT because FROM thl.thl_inconsistent_because WHERE service = ? ORDER BY 1"
        reasons = session.run(query, (service,)) if session.has("thl_inconsistent_because") else []
        return target_row(found[0], reasons, applier=applier_number(session.session, service) is not None)
    finally:
        session.close()


def read_heartbeat(url: str, service: str, table: TableName, name: str) -> str | None:
    """Read the time of the newest heartbeat of a name, as the target's text; None: there is none."""
    session = MySqlSignalSession(url)
    try:
        if not session.has("thl_tables"):
            return None
        where = SAME_TABLE.format("?")
        found = session.run(
            f"SELECT schema_name, table_name FROM thl.thl_tables WHERE {where}", (service, table.schema, table.table)
        )
        if not found:
            return None
        copy = ".".join(quoted(str(part)) for part in found[0])
        rows = session.run(f"SELECT CAST(written AS CHAR) FROM {copy} WHERE service = ? AND name = ?", (service, name))
    finally:
        session.close()
    return str(rows[0][0]) if rows else None
