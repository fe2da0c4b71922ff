"""Reads the target's position, with a session that claims nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import psycopg

from connector.config.target_url import sqlite_file, target_kind
from connector.errors import TargetUnavailable
from connector.log.transaction.position import Intent
from connector.targets.bookkeeping import intent_from, intent_query
from connector.targets.mysql.fence import applier_number
from connector.targets.mysql.signal_table import MySqlSession
from connector.targets.postgres.connection import applier_connected, connect

_COLUMNS = "log_id, seqno, epoch, event_id, gtid_set, consistent, commit_time, applied_at, token"


# Tables and views that earlier versions did not create, and which an earlier GRANT does not cover.
_FURTHER: Final = ("thl_inconsistent_because", "thl_channels", "thl_intent")
_READABLE: Final = "SELECT t, has_table_privilege(to_regclass('thl.' || t), 'SELECT') FROM unnest(%s::text[]) AS t"

# The same reasons as in `thl_inconsistent_because` of other targets. SQLite has one writer.
_SQLITE_CAUSES: Final = """
SELECT 'rewind' FROM thl_rewound WHERE service = ?1
UNION ALL SELECT 'load' FROM thl_position WHERE service = ?1 AND NOT consistent
  AND NOT EXISTS (SELECT 1 FROM thl_rewound WHERE service = ?1)
UNION ALL SELECT DISTINCT 'quarantine' FROM thl_excluded WHERE service = ?1
UNION ALL SELECT DISTINCT 'skipped' FROM thl_inconsistent WHERE service = ?1
"""


@dataclass(frozen=True, slots=True)
class TargetRow:
    """The row of `thl_position`, and what belongs to it; times in µs since 1970 UTC.

    Args:
        because: the reasons for which readers may see what the source never showed.
        channels: the last seqno that each of several writers has committed, -1 before its first.
        intent: the commit of several writers that is not complete.
        unreadable: tables that the account may not read.
        applier: an applier has a session with the target; None: not known.
    """

    log_id: str
    seqno: int
    epoch: int
    event_id: str
    gtid_set: str | None
    consistent: bool
    commit_time: int
    applied_at: int
    token: int
    because: tuple[str, ...] = ()
    channels: tuple[int, ...] = ()
    intent: Intent | None = None
    unreadable: tuple[str, ...] = ()
    applier: bool | None = None


def read_target(url: str, service: str) -> TargetRow | None:
    """Read the position of a service.

    Returns:
        None if nothing was applied yet.

    Raises:
        TargetUnavailable: the target does not answer.
        ConfigError: the URL has an unknown scheme, or libpq refuses it.
    """
    match target_kind(url):
        case "postgres":
            return _postgres(url, service)
        case "mysql":
            return _mysql(url, service)
        case "sqlite":
            return _sqlite(sqlite_file(url), service)


def _row(found: Any, because: Sequence[tuple[Any, ...]], **further: Any) -> TargetRow:
    log_id, seqno, epoch, event_id, gtid_set, consistent, *times_and_token = found
    row = TargetRow(log_id, seqno, epoch, event_id, gtid_set, bool(consistent), *times_and_token)
    return replace(row, because=tuple(str(word) for (word,) in because), **further)


def _sqlite(path: Path, service: str) -> TargetRow | None:
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if "thl_position" not in names:
                return None
            query = f"SELECT {_COLUMNS} FROM thl_position WHERE service = ?"
            found = connection.execute(query, (service,)).fetchone()
            if found is None:
                return None
            known = {"thl_rewound", "thl_excluded", "thl_inconsistent"} <= names
            return _row(found, connection.execute(_SQLITE_CAUSES, (service,)).fetchall() if known else [])
    except sqlite3.Error as error:
        raise TargetUnavailable(f"the target cannot be read: {error}", file=path) from error


def _postgres(url: str, service: str) -> TargetRow | None:
    try:
        with connect(url, "thl status") as connection, connection.transaction():
            # One state of all tables: an intent is there for milliseconds.
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            table = connection.execute("SELECT to_regclass('thl.thl_position')").fetchone()
            if table is None or table[0] is None:
                return None
            query = f"SELECT {_COLUMNS} FROM thl.thl_position WHERE service = %s"
            found = connection.execute(query.encode(), (service,)).fetchone()
            if found is None:
                return None
            return replace(_with_writers(connection, service, found), applier=applier_connected(connection, service))
    except psycopg.Error as error:
        raise TargetUnavailable(f"the target cannot be read: {error}") from error


def _mysql(url: str, service: str) -> TargetRow | None:
    session = MySqlSession(url)
    try:
        if not session.has("thl_position"):
            return None
        found = session.run(f"SELECT {_COLUMNS} FROM thl.thl_position WHERE service = ?", (service,))
        if not found:
            return None
        query = "SELECT because FROM thl.thl_inconsistent_because WHERE service = ? ORDER BY 1"
        causes = session.run(query, (service,)) if session.has("thl_inconsistent_because") else []
        return _row(found[0], causes, applier=applier_number(session.session, service) is not None)
    finally:
        session.close()


def _with_writers(connection: psycopg.Connection, service: str, found: Any) -> TargetRow:
    readable: dict[str, bool | None] = dict(
        connection.execute(_READABLE, (list(_FURTHER),)).fetchall()
    )  # None: there is no such table
    unreadable = tuple(f"thl.{name}" for name, may in readable.items() if may is False)
    if not all(readable.values()):
        return _row(found, [], unreadable=unreadable)
    run, of = connection.execute, (service,)
    causes = run("SELECT because FROM thl.thl_inconsistent_because WHERE service = %s ORDER BY 1", of).fetchall()
    channels = run("SELECT channel, seqno FROM thl.thl_channels WHERE service = %s ORDER BY 1", of).fetchall()
    begun = run(intent_query("%s").encode(), of).fetchall()
    intent = intent_from(begun)[0] if begun else None
    return _row(found, causes, channels=tuple(seqno for _, seqno in channels), intent=intent)
