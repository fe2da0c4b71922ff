"""Definitions with the names under which tables are published."""

from __future__ import annotations

import pytest

from connector.ddl.rename_tables import rename_tables
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName


def table(name: TableName) -> TableName:
    """`t` is published as `new`.`it`, and of the schema `old` all tables in `ne``w`."""
    if name == ("shop", "t"):
        return TableName("new", "it")
    return TableName("ne`w", name.table) if name.schema == "old" else name


def renamed(sql: str, schema: str = "shop") -> str:
    statement = Statement(schema, sql, {"sql_mode": ""})
    return rename_tables(statement, table, lambda name: "ne`w" if name == "old" else name).sql


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("CREATE TABLE t (t INT)", "CREATE TABLE `new`.`it` (t INT)"),
        (
            "CREATE TABLE IF NOT EXISTS `shop` . `t` LIKE old.x",
            "CREATE TABLE IF NOT EXISTS `new`.`it` LIKE `ne``w`.`x`",
        ),
        ("CREATE TABLE u (LIKE t)", "CREATE TABLE `shop`.`u` (LIKE `new`.`it`)"),
        ("DROP TABLE u, t /* t */, old.t", "DROP TABLE `shop`.`u`, `new`.`it` /* t */, `ne``w`.`t`"),
        ("RENAME TABLE t TO u", "RENAME TABLE `new`.`it` TO `shop`.`u`"),
        ("ALTER TABLE u ADD t INT, RENAME t", "ALTER TABLE `shop`.`u` ADD t INT, RENAME `new`.`it`"),
        ("TRUNCATE t", "TRUNCATE `new`.`it`"),
        ("CREATE INDEX t ON t (t)", "CREATE INDEX t ON `new`.`it` (t)"),
        ("DROP DATABASE old", "DROP DATABASE `ne``w`"),
        ("CREATE TABLE u (t INT)", "CREATE TABLE u (t INT)"),
        ("CREATE VIEW t AS SELECT 1 FROM t", "CREATE VIEW t AS SELECT 1 FROM t"),
    ],
)
def test_tables_of_a_statement_are_renamed(sql: str, named: str) -> None:
    assert renamed(sql) == named


def test_statement_without_a_schema_is_refused() -> None:
    with pytest.raises(Unsupported):
        renamed("ALTER DATABASE CHARACTER SET utf8mb4", "old")
