"""An ordinary reader of the target: what it sees while it is written, and what it can prove afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

from connector.demo.sight import Sight


class Witness:
    """Looks at a target by its URL, with a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def sqlite(self) -> bool:
        return self._url.startswith("sqlite")

    def query(self, sql: str) -> list[tuple]:
        if self.sqlite:
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
        try:
            with psycopg.connect(self._url, autocommit=True) as connection:
                return connection.execute(sql).fetchall()
        except (psycopg.errors.UndefinedTable, psycopg.OperationalError):
            return []  # not there yet, or just killed

    def look(self) -> Sight:
        position, applied = self._tables()
        found = self.query(f"SELECT seqno, consistent, gtid_set FROM {position}")
        rows = self.query(f"SELECT coalesce(sum(rows), 0) FROM {applied}")
        if not found or not rows:
            return Sight(-1, False, "", 0)
        return Sight(found[0][0], bool(found[0][1]), found[0][2] or "", int(rows[0][0]))

    def prove_applied_once(self) -> None:
        _, applied = self._tables()
        count, distinct, low, high = self.query(
            f"SELECT count(*), count(DISTINCT seqno), min(seqno), max(seqno) FROM {applied}"
        )[0]
        assert (count, low, high) == (distinct, 0, count - 1), "a seqno is missing in thl_applied, or there twice"
        assert high == self.look().seqno

    def prove_nothing_staged(self) -> None:
        """No staging table outlives the session that made it."""
        if self.sqlite:
            left = self.query("SELECT name FROM sqlite_master WHERE name LIKE '%stag%'")
        else:
            left = self.query(
                "SELECT relname FROM pg_class c WHERE relkind = 'r' AND relname LIKE '%stag%'"
                " AND NOT (relpersistence = 't' AND EXISTS (SELECT 1 FROM pg_stat_activity"
                " WHERE application_name LIKE 'thl%'))"
            )
        assert left == [], left

    def _tables(self) -> tuple[str, str]:
        return ("thl_position", "thl_applied") if self.sqlite else ("thl.thl_position", "thl.thl_applied")
