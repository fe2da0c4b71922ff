"""Definitions in the log, and the rows that a table has after them."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import Unsupported
from connector.log.ids import Action, Seqno
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.records.versions import ENDED
from tests.unit.producer.records.event_log import CREATE, LAYOUT, NAME, Log, delete, insert, rows, update, values


def test_versions_are_converted_to_later_definitions_when_they_are_read(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl(
        "ALTER TABLE shop.t ADD COLUMN n DECIMAL(9,2) NOT NULL DEFAULT 1.5 FIRST, DROP COLUMN a, RENAME COLUMN v TO w"
    )
    columns = (
        Column("n", "decimal(9,2)", nullable=False),
        LAYOUT.columns[0],
        Column("w", "varchar(20)", charset="utf8mb4"),
    )
    layout = TableLayout(NAME, columns, (1,))
    log.ddl("ALTER TABLE shop.t MODIFY n DECIMAL(12,4) NOT NULL DEFAULT 1.5")
    layout = TableLayout(NAME, (Column("n", "decimal(12,4)", nullable=False), *columns[1:]), (1,))
    (found,) = log.event(rows(Action.UPDATE, ({1: 1}, {2: "uno"}), layout=layout))
    assert values(found) == [(["1.5000", 1, "one"], ["1.5000", 1, "uno"])]


def test_floating_numbers_and_columns_with_capitals_are_completed_and_converted(tmp_path: Path) -> None:
    log = Log(tmp_path / "s")
    log.ddl("CREATE TABLE shop.t (Id INT NOT NULL PRIMARY KEY, Price DOUBLE, Note VARCHAR(9) CHARSET utf8mb4)")
    columns = (
        Column("Id", "int", nullable=False),
        Column("Price", "double"),
        Column("Note", "varchar(9)", charset="utf8mb4"),
    )
    layout = TableLayout(NAME, columns, (0,))
    log.event(rows(Action.INSERT, (None, {0: 1, 1: 1.5, 2: "one"}), layout=layout))
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {2: "uno"}), layout=layout))
    assert values(found) == [([1, 1.5, "one"], [1, 1.5, "uno"])]
    log.ddl("ALTER TABLE shop.t ADD COLUMN N INT DEFAULT 3")
    later = TableLayout(NAME, (*columns, Column("N", "int")), (0,))
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {1: 2.5}), layout=later))
    assert values(found) == [([1, 1.5, "uno", 3], [1, 2.5, "uno", 3])]
    log.close()


def test_rows_that_are_known_by_another_key_than_before_are_not_known(log: Log) -> None:
    name = TableName("shop", "u")
    log.ddl("CREATE TABLE shop.u (id INT NOT NULL UNIQUE, a INT NOT NULL UNIQUE, v VARCHAR(20) CHARSET utf8mb4)")
    columns = (LAYOUT.columns[0], Column("a", "int", nullable=False), LAYOUT.columns[2])
    by_id, by_a = TableLayout(name, columns, (0,)), TableLayout(name, columns, (1,))
    log.event(rows(Action.INSERT, (None, {0: 1, 1: 2, 2: "one"}), (None, {0: 2, 1: 1, 2: "two"}), layout=by_id))
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {2: "ONE"}), layout=by_id))
    assert values(found) == [([1, 2, "one"], [1, 2, "ONE"])]
    log.ddl("ALTER TABLE shop.u DROP INDEX id")
    with pytest.raises(Unsupported, match="known by another key"):
        log.event(rows(Action.UPDATE, ({1: 1}, {2: "TWO"}), layout=by_a))


def test_truncated_dropped_and_renamed_tables_have_the_rows_that_they_have(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl("RENAME TABLE shop.t TO shop.u")
    renamed = TableLayout(TableName("shop", "u"), LAYOUT.columns, (0,))
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=renamed))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]
    log.ddl("TRUNCATE TABLE shop.u")
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=renamed))


def test_a_definition_that_is_not_understood_makes_the_rows_unknown(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl("ALTER TABLE shop.t MODIFY a VARCHAR(9)")
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 1}, {2: "x"})))


def test_rows_of_a_table_that_is_exchanged_for_a_partition_are_not_known(log: Log) -> None:
    log.ddl(CREATE.replace("shop.t", "shop.n"))
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl("ALTER TABLE shop.n EXCHANGE PARTITION p WITH TABLE shop.t")
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 1}, {2: "x"})))


def test_going_back_restores_rows_and_definitions(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))  # event 1
    log.event(update(({0: 1}, {0: 3, 1: 11})))  # 2
    log.ddl("ALTER TABLE shop.t DROP COLUMN a")  # 3
    log.ddl("DROP TABLE shop.t")  # 4
    log.completion.go_back(Seqno(1))
    log.seqno = 2
    (found,) = log.event(update(({0: 1}, {2: "uno"})))
    assert values(found) == [([1, 10, "one"], [1, 10, "uno"])]
    log.completion.close()
    log.open()
    (found,) = log.event(delete({0: 1}))
    assert values(found) == [([1, 10, "uno"], None)]


@pytest.mark.parametrize("sql", ["DROP TABLE shop.t", "TRUNCATE TABLE shop.t"])
def test_rows_of_a_table_that_ends_are_deleted_one_day(log: Log, sql: str) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    prefix = log.completion.tables.entry(NAME).prefix
    log.ddl(sql)
    assert [key for key, _ in log.completion.versions.rows(ENDED)] == [ENDED + prefix]
