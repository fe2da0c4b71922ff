"""What only MariaDB's DDL has, as far as no server is needed to know it (tests/integration/mariadb/test_history.py)."""

from __future__ import annotations

import pytest

from connector.ddl.mariadb import brings_virtual
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import Definitions
from connector.log.transaction.layout import TableName
from tests.unit.ddl.test_schema_changes import after, names, unknown


def evolved(*statements: str, **options: str) -> Definitions:
    return after(*statements, dialect="mariadb", explicit_defaults_for_timestamp="1", **options)


@pytest.mark.parametrize(
    ("sql", "brings"),
    [
        ("CREATE TABLE t (a INT, b INT AS (a + 1))", True),
        ("CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS ((a) + 1) VIRTUAL)", True),
        ("SET STATEMENT sql_mode = '' FOR ALTER TABLE t ADD b INT AS (a)", True),
        ("CREATE TABLE t (a INT, b INT AS (a + 1) STORED, c INT AS (a) PERSISTENT)", False),
        ("CREATE TABLE t (a INT, b INT AS (a + 1) STORED, c INT AS (a))", True),
        ("CREATE TABLE t (a INT COMMENT ' AS (a)')", False),
        ("CREATE VIEW v AS (SELECT 1)", False),
        ("DROP TABLE t", False),
        ("CREATE TABLE t (a INT COMMENT 'x", True),  # not understood
    ],
)
def test_columns_that_are_computed_and_not_stored(sql: str, brings: bool) -> None:
    assert brings_virtual(Statement("s", sql, {})) == brings


def test_conditions_are_those_of_the_table_before() -> None:
    assert names(evolved("ALTER TABLE t ADD COLUMN IF NOT EXISTS a TEXT, DROP COLUMN IF EXISTS x"))["s.t"] == ["a", "b"]
    assert names(evolved("ALTER TABLE t ADD COLUMN IF NOT EXISTS (a TEXT, c INT)"))["s.t"] == ["a", "b", "c"]
    assert names(evolved("ALTER TABLE t CHANGE COLUMN IF EXISTS x y INT, MODIFY IF EXISTS b TEXT"))["s.t"] == ["a", "b"]
    assert names(evolved("ALTER TABLE t RENAME COLUMN IF EXISTS a TO z"))["s.t"] == ["z", "b"]
    assert "s.t" in unknown(evolved("ALTER TABLE t CHANGE COLUMN IF EXISTS c c INT, ADD COLUMN IF NOT EXISTS c INT"))
    assert names(evolved("RENAME TABLE IF EXISTS x TO u")) == names(evolved("TRUNCATE t"))


def test_json_is_a_text_of_its_own_character_set() -> None:
    (column,) = evolved("CREATE TABLE j (v JSON) CHARSET latin1").tables[TableName("s", "j")].layout.columns
    assert (column.type, column.charset) == ("longtext", "utf8mb4")


@pytest.mark.parametrize("mode", ["ORACLE", "MAXDB", "512", "4096"])
def test_types_that_mean_something_else_are_not_guessed(mode: str) -> None:
    assert "s.o" in unknown(evolved("CREATE TABLE o (v DATE)", sql_mode=mode))


def test_a_schema_that_is_replaced_is_empty() -> None:
    found = evolved("CREATE OR REPLACE DATABASE s COLLATE uca1400_ai_ci")
    assert names(found) == {"other.t": ["z"]}
    assert found.schemas["s"] == "greek"


def test_of_a_rename_to_a_name_that_is_taken_nobody_knows_which_was_meant() -> None:
    assert set(unknown(evolved("RENAME TABLE t TO u"))) == {"s.t", "s.u"}
    assert names(evolved("RENAME TABLE t TO x, u TO t, x TO u"))["s.u"] == ["a", "b"]


def test_a_conversion_beside_a_definition_is_not_guessed() -> None:
    known = ("CREATE TABLE x (v TEXT) CHARSET latin1",)
    assert "s.x" in unknown(evolved(*known, "ALTER TABLE x CONVERT TO CHARACTER SET gbk, ADD w TEXT CHARSET latin2"))
    assert "s.x" in unknown(evolved(*known, "ALTER TABLE x COLLATE gbk_bin, CONVERT TO CHARACTER SET gbk"))
    converted = evolved(*known, "ALTER TABLE x CONVERT TO CHARACTER SET gbk COLLATE gbk_bin, ENGINE = InnoDB")
    assert converted.tables[TableName("s", "x")].layout.columns[0].charset == "gbk"


def test_a_sequence_is_not_known() -> None:
    assert set(unknown(evolved("CREATE SEQUENCE q START WITH 5"))) == {"s.q"}
    assert not unknown(evolved("CREATE SEQUENCE q", "DROP SEQUENCE IF EXISTS q"))
