"""The comparison of source and target at the end of every run: without it a figure is void."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from urllib.parse import unquote, urlsplit

import psycopg

from connector.config.model import Config
from connector.verify import verify
from tests.bench.logcount import count
from tests.bench.workload import Backlog

_TABLES = "SELECT target_name FROM thl.thl_tables ORDER BY target_name"
_OPERATIONS = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables WHERE schemaname <> 'thl'"


def log_proof(config: Config, backlog: Backlog) -> str:
    """The reason why a log lacks a backlog; empty if it is complete."""
    found = count(config)
    if not found.dense:
        return "the log has holes or doubles"
    if (found.rows, found.events) != (backlog.rows, backlog.events):
        return f"the log has {found.rows} rows in {found.events} events, of {backlog.rows} in {backlog.events}"
    return ""


class TargetProof:
    """Compares targets of one source that does not change.

    The first target of a kind is compared with the source, value by value, as `thl verify` does; the next ones with
    the first, by a fingerprint of all their rows. That is as good, and much quicker.
    """

    def __init__(self) -> None:
        self._equal: dict[str, str] = {}  # kind of target → the fingerprint of one that is equal to the source

    def check(self, config: Config) -> str:
        """The difference of a target from the source; empty if they are equal."""
        kind = urlsplit(config.target.url.get_secret_value()).scheme
        found = fingerprint(config)
        if kind in self._equal:
            return "" if found == self._equal[kind] else "the target differs from the one of another repeat"
        why = differs(config)
        if not why:
            self._equal[kind] = found
        return why


def differs(config: Config) -> str:
    """The difference of source and target, by `thl verify`; empty if they are equal."""
    report = verify(config)
    if not report.tables:
        return "nothing was compared"
    wrong = [table.name for table in report.tables if not table.equal]
    return f"source and target differ in {', '.join(wrong)}" if wrong else ""


def fingerprint(config: Config) -> str:
    """A fingerprint of all rows of a target's tables: equal ones mean equal multisets of rows."""
    url = config.target.url.get_secret_value()
    parts = urlsplit(url)
    return _sqlite(unquote(parts.path[1:])) if parts.scheme == "sqlite" else _postgres(url)


def operations(config: Config) -> int:
    """Rows inserted, updated and deleted in a PostgreSQL target, as its server counts them."""
    with psycopg.connect(config.target.url.get_secret_value(), autocommit=True) as connection:
        found = connection.execute(_OPERATIONS).fetchone()
    return int(found[0]) if found and found[0] is not None else 0


def _postgres(url: str) -> str:
    said = []
    with psycopg.connect(url, autocommit=True) as connection:
        for (table,) in connection.execute(_TABLES).fetchall():
            schema, _, name = table.rpartition(".")
            place = f'"{schema}"."{name}"' if schema else f'"{name}"'
            query = f"SELECT count(*), sum(hashtextextended(t::text, 0)::numeric) FROM {place} t"
            said.append(f"{table} {connection.execute(query.encode()).fetchone()}")
    return "\n".join(said)


def _sqlite(path: str) -> str:
    said = []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        for (table,) in connection.execute("SELECT target_name FROM thl_tables ORDER BY target_name").fetchall():
            rows = total = 0
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                rows += 1
                total += int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=16).digest(), "big")
            said.append(f"{table} {rows} {total}")
    return "\n".join(said)
