"""Reads a heartbeat from the target: the row in its copy of source.heartbeat_table. Claims nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from connector.config.target_url import sqlite_file, target_kind
from connector.errors import TargetUnavailable
from connector.log.transaction.layout import TableName
from connector.targets.mysql.signal_table import MySqlSession
from connector.targets.postgres.connection import connect

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAME_BYTES: Final = 63  # PostgreSQL cuts longer names
_SAME_TABLE: Final = "service = {0} AND lower(schema_name) = lower({0}) AND lower(table_name) = lower({0})"


def heartbeat_time(url: str, service: str, table: TableName, name: str) -> int | None:
    """Return the time at which the newest heartbeat on the target was written.

    Args:
        url: the target's URL.
        service: the service.
        table: the heartbeat table; some sources keep its name in lower case.
        name: the name of the heartbeat.

    Returns:
        µs since 1970 UTC, by the source's clock; None: the target has no such heartbeat.

    Raises:
        TargetUnavailable: the target does not answer.
        ConfigError: the URL has an unknown scheme, or libpq refuses it.
    """
    match target_kind(url):
        case "postgres":
            text = _postgres(url, service, table, name)
        case "mysql":
            text = _mysql(url, service, table, name)
        case "sqlite":
            text = _sqlite(sqlite_file(url), service, table, name)
    if text is None:
        return None
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def _sqlite(path: Path, service: str, table: TableName, name: str) -> str | None:
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'thl_tables'").fetchone():
                return None
            found = connection.execute(
                f"SELECT target_name FROM thl_tables WHERE {_SAME_TABLE.format('?')}",
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


def _postgres(url: str, service: str, table: TableName, name: str) -> str | None:
    try:
        with connect(url, "thl wait") as connection:
            tables = connection.execute("SELECT to_regclass('thl.thl_tables')").fetchone()
            if tables is None or tables[0] is None:
                return None
            found = connection.execute(
                f"SELECT schema_name, table_name FROM thl.thl_tables WHERE {_SAME_TABLE.format('%s')}".encode(),
                (service, table.schema, table.table),
            ).fetchone()
            if found is None:
                return None
            copy = sql.Identifier(*(part.encode()[:_NAME_BYTES].decode(errors="ignore") for part in found))
            statement = sql.SQL("SELECT written::text FROM {} WHERE service = %s AND name = %s").format(copy)
            row = connection.execute(statement, (service, name)).fetchone()
    except psycopg.Error as error:
        raise TargetUnavailable(f"the target cannot be read: {error}") from error
    return None if row is None else str(row[0])


def _mysql(url: str, service: str, table: TableName, name: str) -> str | None:
    session = MySqlSession(url)
    try:
        if not session.has("thl_tables"):
            return None
        where = _SAME_TABLE.format("?")
        found = session.run(
            f"SELECT schema_name, table_name FROM thl.thl_tables WHERE {where}", (service, table.schema, table.table)
        )
        if not found:
            return None
        copy = ".".join("`{}`".format(str(part).replace("`", "``")) for part in found[0])
        rows = session.run(f"SELECT CAST(written AS CHAR) FROM {copy} WHERE service = ? AND name = ?", (service, name))
    finally:
        session.close()
    return str(rows[0][0]) if rows else None
