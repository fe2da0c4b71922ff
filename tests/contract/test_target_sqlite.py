"""The contract of a target, on a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.clock import SystemClock
from connector.thl.layout import TableLayout
from connector.write.sqlite import SqliteTarget
from tests.contract.target_ddl import *  # noqa: F403
from tests.contract.target_suite import *  # noqa: F403
from tests.contract.target_values import *  # noqa: F403
from tests.support.net import Row, in_order


class SqlitePlace:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened: list[SqliteTarget] = []

    def open(self, *, audit: bool = False) -> SqliteTarget:
        self.opened.append(SqliteTarget(self.path, SystemClock(), audit=audit, wait=0.2))
        return self.opened[-1]

    def query(self, sql: str) -> list[Row]:
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def read(self, table: TableLayout) -> list[Row] | None:
        name = str(table.name).replace('"', '""')
        columns = ", ".join('"' + column.name.replace('"', '""') + '"' for column in table.columns)
        try:
            return in_order(self.query(f'SELECT {columns} FROM "{name}"'))
        except sqlite3.OperationalError as error:
            assert "no such table" in str(error)
            return None

    def applied(self) -> list[tuple[int, int]]:
        return [(int(seqno), int(rows)) for seqno, rows in self.query("SELECT seqno, rows FROM thl_applied ORDER BY 1")]

    def staging(self) -> int:
        known = "SELECT target_name FROM thl_tables"
        ours = "('thl_position', 'thl_tables', 'thl_applied')"
        where = f"type = 'table' AND name NOT IN ({known}) AND name NOT IN {ours}"
        return int(self.query(f"SELECT count(*) FROM sqlite_master WHERE {where}")[0][0])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SqlitePlace]:
    made = SqlitePlace(tmp_path / "target.db")
    yield made
    for target in made.opened:
        target.close()
