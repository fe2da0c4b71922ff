"""An ordinary reader of the target: it observes it during the run and checks it afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pymysql

from connector.config.target_url import mysql_address
from connector.demo.probe import TargetProbe

NOTHING = TargetProbe(-1, False, "", 0)
_ABSENT = {1049, 1146, 1053, 2003, 2006, 2013}  # no such database or table, or the server is down


class Witness:
    """Reads a target by its URL, with a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._sqlite = url.startswith("sqlite")
        self._mysql = url.startswith("mysql")
        prefix = "" if self._sqlite else "thl."
        self._position, self._applied = f"{prefix}thl_position", f"{prefix}thl_applied"

    def look(self) -> TargetProbe:
        """Read the position; None while the target or its server is absent."""
        found = self._query(f"SELECT seqno, consistent, gtid_set FROM {self._position}")
        return TargetProbe(found[0][0], bool(found[0][1]), found[0][2] or "", 0) if found else NOTHING

    def token(self) -> int:
        """The fencing token of the last claim; 0 before the first."""
        found = self._query(f"SELECT token FROM {self._position}")
        return int(found[0][0]) if found else 0

    def prove_applied_once(self) -> None:
        """Check that every seqno up to the position has one row, written in the transaction that applied it."""
        ((count, distinct, low, high),) = self._query(
            f"SELECT count(*), count(DISTINCT seqno), min(seqno), max(seqno) FROM {self._applied}"
        )
        assert (count, low, high) == (distinct, 0, count - 1), "a seqno is missing in thl_applied, or there twice"
        assert high == self.look().seqno

    def tokens(self) -> list[int]:
        """The fencing tokens in the order of the seqnos, one for each run of events."""
        found = self._query(f"SELECT token FROM {self._applied} ORDER BY seqno")
        tokens = [row[0] for row in found]
        return [token for at, token in enumerate(tokens) if at == 0 or token != tokens[at - 1]]

    def staged(self) -> list[str]:
        """The staging tables that exist; call it when no applier runs."""
        if self._sqlite:
            return [name for (name,) in self._query("SELECT name FROM sqlite_master WHERE name LIKE '%stag%'")]
        if self._mysql:  # temporary tables end with their session
            marks = "table_schema = 'thl' AND table_name LIKE 'thl\\_marks%'"
            return [name for (name,) in self._query(f"SELECT table_name FROM information_schema.tables WHERE {marks}")]
        return [name for (name,) in self._query("SELECT relname FROM pg_class WHERE relname LIKE '%thl\\_stag%'")]

    def sessions(self) -> list[int]:
        """Process ids of PostgreSQL's backends that serve an applier, or the numbers of its sessions with MySQL."""
        found = self._query(
            "SELECT id FROM information_schema.processlist WHERE db = 'thl'"
            if self._mysql
            else "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'thl%'"
        )
        return [number for (number,) in found]

    def end_session(self, number: int) -> None:
        """End a session with MySQL."""
        self._query(f"KILL {number}")

    def _query(self, sql: str) -> list[tuple[Any, ...]]:
        if self._sqlite:
            path = self._url.removeprefix("sqlite:///")
            if not Path(path).exists():
                return []
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
                try:
                    return connection.execute(sql).fetchall()
                except sqlite3.OperationalError as error:
                    if "no such table" in str(error):
                        return []
                    raise
        if self._mysql:
            return self._query_mysql(sql)
        try:
            with psycopg.connect(self._url, autocommit=True, application_name="witness") as connection:
                return connection.execute(sql.encode()).fetchall()
        except (psycopg.errors.UndefinedTable, psycopg.OperationalError):
            return []  # not there yet, or just killed

    def _query_mysql(self, sql: str) -> list[tuple[Any, ...]]:
        to = mysql_address(self._url)
        try:
            connection = pymysql.connect(host=to.host, port=to.port, user=to.user, password=to.password)
        except pymysql.MySQLError:  # just killed
            return []
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())
        except pymysql.MySQLError as error:
            if error.args[0] not in _ABSENT:
                raise
            return []
        finally:
            if connection.open:
                connection.close()
