"""Reads the target's position, with a session that claims nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from connector.config.target_url import sqlite_file, target_kind
from connector.errors import TargetUnavailable
from connector.targets.postgres.connection import connect

_COLUMNS = "log_id, seqno, epoch, event_id, gtid_set, consistent, commit_time, applied_at, token"


@dataclass(frozen=True, slots=True)
class TargetRow:
    """The row of `thl_position`; times in µs since 1970 UTC."""

    log_id: str
    seqno: int
    epoch: int
    event_id: str
    gtid_set: str | None
    consistent: bool
    commit_time: int
    applied_at: int
    token: int


def read_target(url: str, service: str) -> TargetRow | None:
    """Read the position of a service.

    Returns:
        None if nothing was applied yet.

    Raises:
        TargetUnavailable: the target does not answer.
        ConfigError: the URL has an unknown scheme, or libpq refuses it.
    """
    postgres = target_kind(url) == "postgres"
    row = _postgres(url, service) if postgres else _sqlite(sqlite_file(url), service)
    if row is None:
        return None
    log_id, seqno, epoch, event_id, gtid_set, consistent, *times_and_token = row
    return TargetRow(log_id, seqno, epoch, event_id, gtid_set, bool(consistent), *times_and_token)


def _sqlite(path: Path, service: str) -> Any:
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'thl_position'").fetchone():
                return None
            return connection.execute(f"SELECT {_COLUMNS} FROM thl_position WHERE service = ?", (service,)).fetchone()
    except sqlite3.Error as error:
        raise TargetUnavailable(f"the target cannot be read: {error}", file=path) from error


def _postgres(url: str, service: str) -> Any:
    try:
        with connect(url, "thl status") as connection:
            found = connection.execute("SELECT to_regclass('thl.thl_position')").fetchone()
            if found is None or found[0] is None:
                return None
            query = f"SELECT {_COLUMNS} FROM thl.thl_position WHERE service = %s"
            return connection.execute(query.encode(), (service,)).fetchone()
    except psycopg.Error as error:
        raise TargetUnavailable(f"the target cannot be read: {error}") from error
