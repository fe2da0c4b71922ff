"""Reads the progress of a PostgreSQL target from outside; claims nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import psycopg
from psycopg import sql

from connector.errors import TargetUnavailable
from connector.log.transaction.layout import TableName
from connector.targets.bookkeeping import intent_from, intent_query
from connector.targets.position import COLUMNS, SAME_TABLE, TargetRow, target_row
from connector.targets.postgres.connection import applier_connected, connect
from connector.targets.postgres.names import POSTGRES_NAME_BYTES

# Tables and views that earlier versions did not create, and which an earlier GRANT does not cover.
_FURTHER: Final = ("thl_inconsistent_because", "thl_channels", "thl_intent")
_READABLE: Final = "SELECT t, has_table_privilege(to_regclass('thl.' || t), 'SELECT') FROM unnest(%s::text[]) AS t"


def read_position(url: str, service: str) -> TargetRow | None:
    """Read the position of a service; None: nothing was applied yet."""
    try:
        with connect(url, "thl status") as connection, connection.transaction():
            # One state of all tables: an intent is there for milliseconds.
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            table = connection.execute("SELECT to_regclass('thl.thl_position')").fetchone()
            if table is None or table[0] is None:
                return None
            query = f"SELECT {COLUMNS} FROM thl.thl_position WHERE service = %s"
            found = connection.execute(query.encode(), (service,)).fetchone()
            if found is None:
                return None
            return replace(_with_writers(connection, service, found), applier=applier_connected(connection, service))
    except psycopg.Error as error:
        raise TargetUnavailable(f"the target cannot be read: {error}") from error


def read_heartbeat(url: str, service: str, table: TableName, name: str) -> str | None:
    """Read the time of the newest heartbeat of a name, as the target's text; None: there is none."""
    try:
        with connect(url, "thl wait") as connection:
            tables = connection.execute("SELECT to_regclass('thl.thl_tables')").fetchone()
            if tables is None or tables[0] is None:
                return None
            found = connection.execute(
                f"SELECT schema_name, table_name FROM thl.thl_tables WHERE {SAME_TABLE.format('%s')}".encode(),
                (service, table.schema, table.table),
            ).fetchone()
            if found is None:
                return None
            copy = sql.Identifier(*(part.encode()[:POSTGRES_NAME_BYTES].decode(errors="ignore") for part in found))
            statement = sql.SQL("SELECT written::text FROM {} WHERE service = %s AND name = %s").format(copy)
            row = connection.execute(statement, (service, name)).fetchone()
    except psycopg.Error as error:
        raise TargetUnavailable(f"the target cannot be read: {error}") from error
    return None if row is None else str(row[0])


def _with_writers(connection: psycopg.Connection, service: str, found: Any) -> TargetRow:
    readable: dict[str, bool | None] = dict(
        connection.execute(_READABLE, (list(_FURTHER),)).fetchall()
    )  # None: there is no such table
    unreadable = tuple(f"thl.{name}" for name, may in readable.items() if may is False)
    if not all(readable.values()):
        return target_row(found, [], unreadable=unreadable)
    run, of = connection.execute, (service,)
    reasons = run("SELECT because FROM thl.thl_inconsistent_because WHERE service = %s ORDER BY 1", of).fetchall()
    channels = run("SELECT channel, seqno FROM thl.thl_channels WHERE service = %s ORDER BY 1", of).fetchall()
    begun = run(intent_query("%s").encode(), of).fetchall()
    intent = intent_from(begun)[0] if begun else None
    return target_row(found, reasons, channels=tuple(seqno for _, seqno in channels), intent=intent)
