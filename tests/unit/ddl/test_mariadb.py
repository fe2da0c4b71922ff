"""DDL that only MariaDB has; tests/integration/mariadb/test_history.py asks a real server."""

from __future__ import annotations

import pytest

from connector.ddl.mariadb import brings_virtual, check_renames
from connector.errors import Unsupported
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
def test_statement_that_adds_virtual_columns_is_recognised(sql: str, brings: bool) -> None:
    assert brings_virtual(Statement("s", sql, {})) == brings


@pytest.mark.parametrize(
    "renames",
    [
        ["RENAME TABLE t TO v"],
        ["ALTER TABLE s.T RENAME TO V"],
        ["RENAME TABLE o TO p, t TO v"],
        ["RENAME TABLE t TO p, p TO v"],
        ["RENAME TABLE t TO p", "ALTER TABLE p RENAME v"],
    ],
)
def test_a_table_of_partial_images_that_gets_the_name_of_one_with_virtual_columns_is_refused(
    renames: list[str],
) -> None:
    partial = {("s", "t")}
    with pytest.raises(Unsupported, match="VIRTUAL") as caught:
        for sql in renames:
            check_renames(Statement("s", sql, {}), partial, [("s", "v")])
    assert str(caught.value.where["renamed"]).lower() == "s.v"


@pytest.mark.parametrize(
    "sql",
    [
        "RENAME TABLE t TO other",
        "RENAME TABLE other TO v",  # of which no image was partial
        "RENAME TABLE v TO t",
        "RENAME TABLE t TO x.v",
        "ALTER TABLE t ADD b INT",
        "CREATE TABLE v LIKE t",
        "ALTER TABLE t SOMETHING THAT IS NOT UNDERSTOOD",
    ],
)
def test_other_definitions_after_partial_images_are_read(sql: str) -> None:
    check_renames(Statement("s", sql, {}), {("s", "t")}, [("s", "v")])


def test_if_exists_conditions_refer_to_the_table_before_the_statement() -> None:
    assert names(evolved("ALTER TABLE t ADD COLUMN IF NOT EXISTS a TEXT, DROP COLUMN IF EXISTS x"))["s.t"] == ["a", "b"]
    assert names(evolved("ALTER TABLE t ADD COLUMN IF NOT EXISTS (a TEXT, c INT)"))["s.t"] == ["a", "b", "c"]
    assert names(evolved("ALTER TABLE t CHANGE COLUMN IF EXISTS x y INT, MODIFY IF EXISTS b TEXT"))["s.t"] == ["a", "b"]
    assert names(evolved("ALTER TABLE t RENAME COLUMN IF EXISTS a TO z"))["s.t"] == ["z", "b"]
    assert "s.t" in unknown(evolved("ALTER TABLE t CHANGE COLUMN IF EXISTS c c INT, ADD COLUMN IF NOT EXISTS c INT"))
    assert names(evolved("RENAME TABLE IF EXISTS x TO u")) == names(evolved("TRUNCATE t"))


@pytest.mark.parametrize(
    "clauses",
    [
        "ADD COLUMN c INT, DROP COLUMN IF EXISTS c",
        "DROP COLUMN IF EXISTS c, ADD COLUMN c INT",
        "DROP COLUMN a, ADD COLUMN IF NOT EXISTS A INT",
        "ADD COLUMN IF NOT EXISTS a INT, DROP COLUMN A",
        "RENAME COLUMN a TO c, MODIFY IF EXISTS c TEXT",
        "MODIFY COLUMN a INT, CHANGE COLUMN IF EXISTS b a INT",
        "ADD COLUMN IF NOT EXISTS c INT, DROP COLUMN IF EXISTS c",
    ],
)
def test_condition_about_a_column_of_another_clause_makes_the_table_unknown(clauses: str) -> None:
    assert "s.t" in unknown(evolved(f"ALTER TABLE t {clauses}"))


def test_json_is_a_longtext_of_utf8mb4() -> None:
    (column,) = evolved("CREATE TABLE j (v JSON) CHARSET latin1").tables[TableName("s", "j")].layout.columns
    assert (column.type, column.charset) == ("longtext", "utf8mb4")


@pytest.mark.parametrize("mode", ["ORACLE", "MAXDB", "512", "4096"])
def test_types_with_another_meaning_make_the_table_unknown(mode: str) -> None:
    assert "s.o" in unknown(evolved("CREATE TABLE o (v DATE)", sql_mode=mode))


def test_replaced_schema_is_empty() -> None:
    found = evolved("CREATE OR REPLACE DATABASE s COLLATE uca1400_ai_ci")
    assert names(found) == {"other.t": ["z"]}
    assert found.schemas["s"] == "greek"


def test_rename_to_a_used_name_makes_both_tables_unknown() -> None:
    assert set(unknown(evolved("RENAME TABLE t TO u"))) == {"s.t", "s.u"}
    assert names(evolved("RENAME TABLE t TO x, u TO t, x TO u"))["s.u"] == ["a", "b"]


def test_conversion_beside_a_column_definition_makes_the_table_unknown() -> None:
    known = ("CREATE TABLE x (v TEXT) CHARSET latin1",)
    assert "s.x" in unknown(evolved(*known, "ALTER TABLE x CONVERT TO CHARACTER SET gbk, ADD w TEXT CHARSET latin2"))
    assert "s.x" in unknown(evolved(*known, "ALTER TABLE x COLLATE gbk_bin, CONVERT TO CHARACTER SET gbk"))
    converted = evolved(*known, "ALTER TABLE x CONVERT TO CHARACTER SET gbk COLLATE gbk_bin, ENGINE = InnoDB")
    assert converted.tables[TableName("s", "x")].layout.columns[0].charset == "gbk"


def test_sequence_makes_its_name_unknown() -> None:
    assert set(unknown(evolved("CREATE SEQUENCE q START WITH 5"))) == {"s.q"}
    assert not unknown(evolved("CREATE SEQUENCE q", "DROP SEQUENCE IF EXISTS q"))
