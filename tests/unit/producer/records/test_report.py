"""What `thl records info` says of tables: of those without a key, whose rows the source logs whole, none are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from connector.log.ids import Action, Epoch, Kind, LogId, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.producer.records.report import StoredTable, StoreReport
from connector.records.versions import StoreState
from tests.unit.producer.records.event_log import CREATE, NAME, Log, insert, rows

BARE = TableName("shop", "bare")
LAYOUT = TableLayout(BARE, (Column("a", "int", nullable=False), Column("b", "int")), ())


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "store")
    yield made
    made.close()


def reported(log: Log) -> StoreReport:
    versions = log.completion.versions
    tables = sorted(log.completion.tables, key=lambda one: one.table.name)
    found = tuple(StoredTable(one, sum(1 for _ in versions.rows(one.prefix))) for one in tables)
    return StoreReport(StoreState(LogId("b" * 32), Seqno(1), Epoch(1), Seqno(0)), 1, found)


def test_table_without_a_key_is_one_of_which_no_rows_are_kept(log: Log) -> None:
    log.ddl(CREATE)
    log.ddl("CREATE TABLE shop.bare (a INT NOT NULL, b INT, UNIQUE (b), KEY (a))")
    log.event(insert({0: 1}), rows(Action.INSERT, (None, {0: 1, 1: 2}), layout=LAYOUT))
    _, bare, keyed = reported(log).as_lines()
    assert bare == "shop.bare: no rows are kept: without a key the source logs them whole"
    assert keyed == "shop.t: 1 rows"
    assert reported(log).as_object()["tables"] == [
        {"schema": "shop", "table": "bare", "rows": 0, "keyless": True},
        {"schema": "shop", "table": "t", "rows": 1},
    ]


def test_table_without_a_key_misses_no_rows_while_it_is_loaded(log: Log) -> None:
    definition = Statement("shop", "CREATE TABLE shop.bare (a INT NOT NULL, b INT)", {})
    log.event(definition, kind=Kind.LOAD, **LoadEvent("l1", Part.BEGIN, BARE).metadata())
    assert [one.entry.loading for one in reported(log).tables] == [True]
    assert [one.missing for one in reported(log).tables] == [""]
    log.ddl(CREATE)
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    assert {one.entry.table.name: bool(one.missing) for one in reported(log).tables} == {BARE: False, NAME: True}


def test_table_whose_rows_the_log_names_by_a_unique_key_is_kept(log: Log) -> None:
    log.ddl("CREATE TABLE shop.bare (a INT NOT NULL, b INT, UNIQUE (a))")
    assert not reported(log).tables[0].entry.keyless  # no row has come yet
    log.event(rows(Action.INSERT, (None, {0: 1, 1: 2}), layout=replace(LAYOUT, key=(0,))))
    assert reported(log).as_lines()[1] == "shop.bare: 1 rows"
    log.event(rows(Action.UPDATE, ({0: 1}, {1: 3}), layout=replace(LAYOUT, key=(0,))))
    assert not reported(log).tables[0].entry.keyless
