"""The contract of a target, on a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connector.clock import SystemClock
from connector.errors import PreflightError, TargetDiffers, TargetUnavailable, ValueNotRepresentable
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.transaction.layout import TableLayout
from connector.targets.signal_table import SignalTable
from connector.targets.sqlite.signal_table import SqliteSignalSession
from connector.targets.sqlite.target import SqliteTarget
from tests.contract.target_again import *  # noqa: F403
from tests.contract.target_ddl import *  # noqa: F403
from tests.contract.target_history import *  # noqa: F403
from tests.contract.target_load import *  # noqa: F403
from tests.contract.target_load import begin, unique
from tests.contract.target_partial import *  # noqa: F403
from tests.contract.target_suite import *  # noqa: F403
from tests.contract.target_suite import CREATE_USERS, KILLS, USERS, Applier, stops
from tests.contract.target_transactions import *  # noqa: F403
from tests.contract.target_values import *  # noqa: F403
from tests.contract.target_ways_out import *  # noqa: F403
from tests.support.net import Row, in_order, layout, net


class SqlitePlace:
    schemaless = True
    kinds = ("INTEGER", "INTEGER")
    way_out = "copy the rows"
    lacks = frozenset[str]()
    indexes = True
    computed = "STORED"
    early = False
    kills = KILLS

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened: list[SqliteTarget] = []

    def open(
        self, *, audit: bool = False, columns: MetadataColumns | None = None, history: HistoryTables | None = None
    ) -> SqliteTarget:
        made = SqliteTarget(self.path, SystemClock(), audit=audit, wait=0.2, columns=columns, history=history)
        self.opened.append(made)
        return made

    @property
    def options(self) -> dict[str, Any]:
        return {"url": f"sqlite:///{self.path}"}

    def query(self, sql: str) -> list[Row]:
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def open_for_undo(self, *, columns: MetadataColumns | None = None) -> SqliteTarget:
        return self.open(audit=True, columns=columns)

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

    def drop(self, table: TableLayout) -> None:
        self.query(f'DROP TABLE "{table.name}"')

    def run(self, sql: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(sql)

    def indexed(self, table: TableLayout) -> list[str]:
        named = "SELECT l.name, i.name FROM pragma_index_list('{}') l JOIN pragma_index_info(l.name) i ORDER BY i.seqno"
        found: dict[object, list[str]] = {}
        for index, column in self.query(named.format(table.name)):
            found.setdefault(index, []).append(str(column))
        return sorted(",".join(columns) for columns in found.values())

    def marks(self) -> int:
        found = self.query("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name LIKE 'thl_marks_%'")
        return int(str(found[0][0]))

    def note_deletes(self, name: str, body: str) -> None:
        self.run(f"CREATE TRIGGER by_user AFTER DELETE ON {name} BEGIN {body}; END")

    def forget_deletes(self, name: str) -> None:
        self.run("DROP TRIGGER by_user")

    def signals(self) -> SignalTable:
        return SignalTable(SqliteSignalSession(self.path))

    def staging(self) -> int:
        known = "SELECT target_name FROM thl_tables"
        where = f"type = 'table' AND name NOT IN ({known}) AND name NOT GLOB 'thl_*'"
        return int(self.query(f"SELECT count(*) FROM sqlite_master WHERE {where}")[0][0])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SqlitePlace]:
    made = SqlitePlace(tmp_path / "target.db")
    yield made
    for target in made.opened:
        target.close()


def test_newer_applier_waits_for_an_open_transaction_then_gives_up(place: SqlitePlace) -> None:
    older = Applier(place.open())
    older.sql(CREATE_USERS)
    older.target.stage([net(USERS, inserts=[(1, "old", None)])], last=True)
    with pytest.raises(TargetUnavailable) as waited:
        place.open().claim("shop")
    assert waited.value.where["service"] == "shop"
    older.commit()
    assert place.open().claim("shop") == older.position


def test_a_commit_survives_a_power_cut(place: SqlitePlace) -> None:
    """As far as SQLite promises it: these two settings."""
    target = place.open()
    pragmas = [target._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert pragmas == ["wal", 2]


def test_reader_keeps_its_snapshot_during_a_commit(place: SqlitePlace) -> None:
    applier = Applier(place.open())
    applier.sql(CREATE_USERS)
    reader = sqlite3.connect(place.path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute('SELECT count(*) FROM "shop.users"').fetchone() == (0,)
    applier.rows(net(USERS, inserts=[(1, "ann", None)]))
    assert reader.execute('SELECT count(*) FROM "shop.users"').fetchone() == (0,)
    reader.execute("COMMIT")
    assert reader.execute('SELECT count(*) FROM "shop.users"').fetchone() == (1,)
    reader.close()


def test_a_keyless_table_may_have_a_column_called_rowid(place: SqlitePlace) -> None:
    applier = Applier(place.open())
    applier.sql("CREATE TABLE r (rowid INT, _rowid_ INT)")
    table = layout("shop.r", ["rowid int", "_rowid_ int"])
    applier.rows(net(table, inserts=[(7, 1), (7, 1), (8, 1)]))
    applier.rows(net(table, deletes=[(7, 1)]))
    assert place.read(table) == [(7, 1), (8, 1)]


def test_bytes_in_a_text_column_stop(place: SqlitePlace) -> None:
    applier = Applier(place.open())
    applier.sql("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    table = layout("shop.t", ["id int", "v varchar(9)"], ["id"])
    with pytest.raises(ValueNotRepresentable) as stopped:
        applier.rows(net(table, inserts=[(1, "text"), (2, b"\xff")]))
    assert str(stopped.value.where["table"]) == "shop.t"
    assert place.read(table) == []


def test_names_that_differ_in_case_only_are_refused_with_both(place: SqlitePlace) -> None:
    applier = Applier(place.open())
    applier.sql(CREATE_USERS)
    with pytest.raises(ValueNotRepresentable) as refused:
        applier.sql("CREATE TABLE USERS (a INT)")
    assert (str(refused.value.where["other"]), str(refused.value.where["table"])) == ("shop.users", "shop.USERS")


def test_text_with_u0000_is_kept(place: SqlitePlace) -> None:
    applier = Applier(place.open())
    applier.sql(CREATE_USERS)
    applier.rows(net(USERS, inserts=[(1, "a\0b", "\0")]))
    assert place.read(USERS) == [(1, "a\0b", "\0")]


def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("not a database at all, but long enough to look at " * 100)
    with pytest.raises(PreflightError) as refused:
        SqliteTarget(path, SystemClock())
    assert "target.url" in refused.value.hint


def test_dependent_view_of_a_rebuilt_table_is_named(place: SqlitePlace, applier: Applier) -> None:
    applier.rows(net(USERS, inserts=[(1, "ann", None)]))
    place.run('CREATE VIEW report AS SELECT name FROM "shop.users"')
    error = stops(applier, TargetDiffers, "ALTER TABLE users ADD n INT")
    assert "report" in error.message
    assert "DROP VIEW" in error.hint
    applier.target.close()
    assert place.query("SELECT * FROM report") == [("ann",)]


def test_a_keyless_table_with_each_name_of_the_rowid_stops(place: SqlitePlace, applier: Applier) -> None:
    applier.sql("CREATE TABLE r (rowid INT, _ROWID_ INT, oid INT)")
    table = layout("shop.r", ["rowid int", "_ROWID_ int", "oid int"])
    applier.rows(net(table, inserts=[(1, 2, 3)]))
    with pytest.raises(ValueNotRepresentable) as raised:
        applier.rows(net(table, deletes=[(1, 2, 3)]))
    assert "source.filters.tables" in raised.value.hint


def test_progress_view_has_times(place: SqlitePlace) -> None:
    applier = Applier(place.open())
    assert place.query("SELECT seqno, commit_time, applied_at, latency FROM thl_progress") == [(-1, None, None, None)]
    applier.commit()
    ((seqno, gtid_set, consistent, commit_time, latency),) = place.query(
        "SELECT seqno, gtid_set, consistent, commit_time, latency FROM thl_progress WHERE service = 'shop'"
    )
    assert (seqno, gtid_set, consistent) == (0, applier.position.gtid_set, 1)
    assert commit_time == "2023-11-14 22:13:20.000000"
    assert isinstance(latency, float)
    assert latency > 0


def test_ambiguous_missing_row_is_not_named(applier: Applier) -> None:
    """The deleted row is gone; the last commit has neither the missing row nor the one inserted after it."""
    with pytest.raises(TargetDiffers) as raised:
        applier.rows(
            net(USERS, inserts=[(5, "of the same commit", None)]), net(USERS, deletes=[(5, "", None), (9, "", None)])
        )
    assert raised.value.where["rows"] is None


def test_foreign_key_that_acts_on_deletes_stops_the_load(place: SqlitePlace) -> None:
    target = place.open()
    applier = Applier(target)
    applier.sql("CREATE DATABASE shop", CREATE_USERS)
    applier.rows(net(USERS, inserts=[(1, "ann", "a")]))
    unique(place, USERS, "mail")
    place.run('CREATE TABLE child (p INTEGER REFERENCES "shop.users" (id) ON DELETE CASCADE)')
    target._db.execute("PRAGMA foreign_keys = ON")  # as a build of SQLite may have it
    with pytest.raises(TargetDiffers, match="foreign key of child"):
        begin(applier)
    target.discard()
    target._db.execute("PRAGMA foreign_keys = OFF")
    begin(applier)
