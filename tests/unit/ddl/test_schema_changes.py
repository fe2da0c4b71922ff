"""What a statement makes of the source's tables, as far as no server is needed to know it; the rest is asked of MySQL
itself (tests/integration/binlog/test_table_history.py)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from connector.config.filters import Filters
from connector.ddl.schema_changes import schema_changes
from connector.ddl.schema_draft import Rules
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import VIEW, Definitions, Redefined, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.mysql.binlog.events.query import Query
from connector.mysql.schema_history.table_history import TableHistory
from connector.mysql.transforms.filters import Filter

ANSI_QUOTES, NO_BACKSLASH_ESCAPES = 4, 1 << 20
RULES = Rules(str, lambda schema: schema != "unwanted")
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def table(name: str, *columns: str, schema: str = "s") -> TableDefinition:
    found = TableName(schema, name)
    return TableDefinition(TableLayout(found, tuple(Column(column, "int") for column in columns)), "latin1")


def tables(*found: TableDefinition) -> Definitions:
    return Definitions({one.name: one for one in found}, {"s": "latin1", "other": "utf8mb4"})


KNOWN = tables(table("t", "a", "b"), table("u", "c"), table("t", "z", schema="other"))


def after(
    *statements: str,
    known: Definitions = KNOWN,
    rules: Rules = RULES,
    schemas: Iterable[str] = ("s",),
    **options: str,
) -> Definitions:
    for sql in statements:
        statement = Statement("s", sql, options)
        known = known.after(
            schema_changes(
                statement, known, rules, schemas=schemas, server_charset="greek", position="binlog.000007:99"
            )
        )
    return known


def names(known: Definitions) -> dict[str, list[str]]:
    """`schema.table` → its columns."""
    return {str(name): [column.name for column in one.layout.columns] for name, one in known.tables.items()}


def unknown(known: Definitions) -> dict[str, str]:
    return {str(name): one.unknown for name, one in known.tables.items() if one.unknown}


def test_tables_swap_names() -> None:
    found = after("RENAME TABLE t TO x, u TO t, x TO u")
    assert names(found) == {"s.t": ["c"], "s.u": ["a", "b"], "other.t": ["z"]}
    assert all(one.name == name for name, one in found.tables.items())


def test_double_quotes_are_names_under_ansi_quotes() -> None:
    sql = 'ALTER TABLE "t" RENAME COLUMN "a" TO "`\\"'
    assert names(after(sql, sql_mode=str(ANSI_QUOTES)))["s.t"] == ["`\\", "b"]
    assert list(unknown(after(sql))) == ["s.t", "s.u"]


def test_backslash_is_literal_under_no_backslash_escapes() -> None:
    sql = r"ALTER TABLE t ADD e ENUM('a\', 'b')"
    column = after(sql, sql_mode=str(NO_BACKSLASH_ESCAPES)).tables[TableName("s", "t")].layout.columns[2]
    assert column.labels == ("a\\", "b")
    assert unknown(after(sql))


@pytest.mark.parametrize("sql", ["ALTER TABLE t DISCARD PARTITION p TABLESPACE", "CREATE TABLE t (a money)"])
def test_unknown_statement_makes_its_table_unknown_with_text_and_position(sql: str) -> None:
    found = unknown(after(sql))
    assert list(found) == ["s.t"]
    assert sql in found["s.t"]
    assert "binlog.000007:99" in found["s.t"]


def test_unparsed_statement_makes_every_table_of_its_schemas_unknown() -> None:
    assert list(unknown(after("FROBNICATE t"))) == ["s.t", "s.u"]
    assert list(unknown(after("FROBNICATE t", schemas=("other",)))) == ["other.t"]


def test_unknown_table_stays_unknown_when_renamed_until_it_is_created_again() -> None:
    found = after("ALTER TABLE t FROB", "ALTER TABLE t ADD c INT", "RENAME TABLE t TO v", "CREATE TABLE w LIKE v")
    assert list(unknown(found)) == ["s.v", "s.w"]
    assert all("FROB" in why for why in unknown(found).values())
    assert unknown(after("DROP TABLE v", "CREATE TABLE v (a INT)", known=found)).keys() == {"s.w"}


def test_executable_comment_with_two_effects_makes_the_table_unknown() -> None:
    assert list(unknown(after("ALTER TABLE t ADD c INT /*!90000 , DROP a */"))) == ["s.t"]
    assert not unknown(after("ALTER TABLE t ADD c INT /*!80023 INVISIBLE */"))
    assert names(after("ALTER TABLE t /*!40000 ADD c INT */"))["s.t"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW v AS SELECT FROBNICATE",
        "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW s.v (a) AS SELECT 1",
        "ALTER VIEW v AS SELECT 1",
        "CREATE VIEW IF NOT EXISTS v AS SELECT 1",
        "CREATE VIEW w AS SELECT 1; RENAME TABLE w TO v",
        "CREATE JSON RELATIONAL DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT('_id': a) FROM t",
        "CREATE OR REPLACE JSON DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT('_id': a) FROM t",
        "CREATE MATERIALIZED VIEW v AS SELECT 1",
    ],
)
def test_a_view_has_its_name_until_it_is_dropped(made: str) -> None:
    viewed = after(*made.split("; "))
    assert unknown(viewed) == {"s.v": VIEW}
    history = TableHistory(viewed, Filter(Filters(), lower_case_table_names=1))
    found_it = Statement("s", "CREATE TABLE IF NOT EXISTS v (a INT)", {})
    assert history.creation_options(found_it)[replay.TABLE_EXISTED] == "1"
    assert after(*made.split("; "), found_it.sql) == viewed
    for dropped in ("DROP VIEW IF EXISTS none, v RESTRICT", "DROP DATABASE s; CREATE DATABASE s"):
        assert "s.v" not in unknown(after(*made.split("; "), *dropped.split("; ")))


def test_a_statement_about_a_view_changes_no_table() -> None:
    """Before MySQL 8.0 a DROP VIEW drops the views and fails at the names of tables."""
    assert after("CREATE VIEW IF NOT EXISTS t AS SELECT 1") == KNOWN
    assert after("DROP VIEW IF EXISTS none, t", error_code="1347") == KNOWN


def test_names_are_compared_as_the_server_does() -> None:
    folded = Rules(str.lower, lambda _: True)
    assert "s.t" in names(after("CREATE TABLE T2 (x INT)", "DROP TABLE T2"))
    assert names(after("ALTER TABLE T DROP A", rules=folded))["s.t"] == ["b"]
    assert names(after("ALTER TABLE T DROP A"))["s.t"] == ["a", "b"]


def test_schemas_that_are_not_captured_are_not_kept() -> None:
    found = after("CREATE TABLE unwanted.x (a INT)", "RENAME TABLE t TO unwanted.t", "CREATE DATABASE unwanted")
    assert names(found) == {"s.u": ["c"], "other.t": ["z"]}
    assert "unwanted" not in found.schemas


def test_character_sets_are_inherited() -> None:
    def charset(*statements: str) -> str:
        return after(*statements).tables[TableName("new", "x")].layout.columns[0].charset

    assert charset("CREATE DATABASE new", "CREATE TABLE new.x (v TEXT)") == "greek"
    assert charset("CREATE DATABASE new COLLATE utf8mb3_bin", "CREATE TABLE new.x (v TEXT)") == "utf8mb3"
    assert charset("CREATE DATABASE new", "CREATE TABLE new.x (v TEXT) CHARSET gbk") == "gbk"
    made = "CREATE TABLE new.x (a INT) CHARSET gbk"
    assert charset("CREATE DATABASE new", made, "ALTER TABLE new.x ADD v TEXT FIRST") == "gbk"
    assert "new.x" in unknown(after("CREATE TABLE new.x (v TEXT)"))  # the schema's character set is unknown


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        ("ALTER DATABASE s CHARACTER SET DEFAULT", {}),
        ("ALTER DATABASE CHARACTER SET greek FROB", {}),
        ("ALTER DATABASE s CHARSET greek", {"error_code": "1"}),
        ("ALTER DATABASE s CHARSET greek /*!90000 CHARSET gbk */", {}),
        ("CREATE OR REPLACE DATABASE s CHARACTER SET DEFAULT", {"dialect": "mariadb"}),
    ],
)
def test_a_schema_whose_character_set_only_the_source_knows_is_not_what_it_was(
    sql: str, options: dict[str, str]
) -> None:
    found = after(sql, **options)
    assert found.schemas["s"] == ""
    assert "s.x" in unknown(after("CREATE TABLE x (v TEXT)", known=found))
    again = after("CREATE DATABASE IF NOT EXISTS s CHARSET gbk", known=found)
    assert again.schemas["s"] == ""  # it is there
    assert after("ALTER DATABASE s CHARSET gbk", known=again).schemas["s"] == "gbk"


@pytest.mark.parametrize(
    ("sql", "charset"),
    [
        ("CREATE TABLE x (v TEXT)", "latin1"),
        ("CREATE TABLE OTHER.x (v TEXT)", "utf8mb4"),
        ("CREATE TABLE IF NOT EXISTS other.x (v TEXT) ENGINE = InnoDB", "utf8mb4"),
        ("CREATE TABLE x (v TEXT) CHARSET gbk", ""),
        ("CREATE TABLE x (v TEXT) COLLATE gbk_bin", ""),
        ("CREATE TABLE x (v TEXT) /*!90000 CHARSET gbk */", "latin1"),  # of the reading that has none
        ("CREATE TABLE x (v TEXT) CHARACTER SET DEFAULT", ""),
        ("CREATE TABLE x LIKE t", ""),
        ("CREATE TABLE not_known.x (v TEXT)", ""),
        ("ALTER TABLE t ADD v TEXT", ""),
        ("FROBNICATE t", ""),
    ],
)
def test_a_created_table_without_a_character_set_has_that_of_its_schema(sql: str, charset: str) -> None:
    history = TableHistory(KNOWN, Filter(Filters(), lower_case_table_names=1))
    assert history.creation_options(Statement("s", sql, {})).get(replay.SCHEMA_CHARSET, "") == charset


@pytest.mark.parametrize(
    ("sql", "existed"),
    [
        ("CREATE TABLE IF NOT EXISTS t (v TEXT)", "1"),
        ("CREATE TABLE IF NOT EXISTS OTHER.T LIKE x", "1"),
        ("CREATE TABLE IF NOT EXISTS t SELECT 1 FROBNICATE", "1"),
        ("CREATE TABLE IF NOT EXISTS x (v TEXT)", "0"),
        ("CREATE TABLE IF NOT EXISTS x LIKE t", "0"),
        ("CREATE TABLE /*! IF NOT EXISTS */ x (v TEXT)", "0"),
        ("CREATE TABLE /*!90000 IF NOT EXISTS */ x (v TEXT)", None),  # of one reading
        ("CREATE TABLE IF NOT EXISTS not_known.x (v TEXT)", None),
        ("CREATE TABLE IF NOT EXISTS lost (v TEXT)", None),
        ("CREATE TABLE x (v TEXT)", None),
        ("CREATE OR REPLACE TABLE t (v TEXT)", None),
        ("CREATE DATABASE IF NOT EXISTS s", None),
        ("FROBNICATE t", None),
    ],
)
def test_the_history_tells_whether_a_table_existed(sql: str, existed: str | None) -> None:
    known = after("CREATE TABLE lost FROBNICATE")
    history = TableHistory(known, Filter(Filters(), lower_case_table_names=1))
    assert history.creation_options(Statement("s", sql, {})).get(replay.TABLE_EXISTED) == existed


def test_a_dropped_schema_takes_its_tables_along() -> None:
    found = after("DROP DATABASE s")
    assert names(found) == {"other.t": ["z"]}
    assert found.schemas == {"other": "utf8mb4"}


def test_timestamp_is_not_null_without_explicit_defaults() -> None:
    sql = "ALTER TABLE t ADD at TIMESTAMP"
    for mode, expected in (("0", False), ("1", True)):
        found = after(sql, explicit_defaults_for_timestamp=mode)
        assert [table.layout.columns[-1].nullable for name, table in found.tables.items() if name == ("s", "t")] == [
            expected
        ]
    computed = "ALTER TABLE t ADD at TIMESTAMP AS (NOW())"
    assert "s.t" in unknown(after(computed, explicit_defaults_for_timestamp="0"))
    assert not unknown(after(sql + " NULL", explicit_defaults_for_timestamp="0"))


OLD = Rules(str, lambda schema: True, old=True)


@pytest.mark.parametrize(
    ("clauses", "known"),
    [
        ("CONVERT TO CHARSET cp1251", True),
        ("CONVERT TO CHARSET latin1", True),  # as it is
        ("CONVERT TO CHARSET utf8", False),  # of a column that is utf8 already: nothing is done
        ("CONVERT TO CHARSET cp1251, ADD x VARCHAR(9) CHARSET greek", False),  # converted, too
        ("CONVERT TO CHARSET cp1251, CHARSET greek", False),
    ],
)
def test_conversions_by_servers_before_8(clauses: str, known: bool) -> None:
    """5.6 may keep a table's character set; columns added to such a table later are unknown."""
    charset = "utf8" if clauses.endswith("utf8") else "ascii"
    made = f"CREATE TABLE c (v VARCHAR(9) CHARSET {charset}, n INT) CHARSET latin1"
    found = after(made, f"ALTER TABLE c {clauses}", rules=OLD)
    assert ("s.c" not in unknown(found)) is known
    assert "s.c" not in unknown(after(made, f"ALTER TABLE c {clauses}"))


def test_labels_that_mysql_converts_wrongly_make_the_table_unknown() -> None:
    made = "CREATE TABLE e (v ENUM('é')) CHARSET utf8mb4"
    assert list(unknown(after(made, "ALTER TABLE e CONVERT TO CHARACTER SET latin1"))) == ["s.e"]
    plain = "CREATE TABLE e (v ENUM('e')) CHARSET utf8mb4"
    assert not unknown(after(plain, "ALTER TABLE e CONVERT TO CHARACTER SET latin1"))


@pytest.mark.parametrize(
    ("gtid", "offset", "seen"),
    [(f"{UUID}:5", 999, True), (f"{UUID}:6", 10, False), (None, 100, True), (None, 101, False)],
)
def test_definition_before_the_position_is_skipped(gtid: str | None, offset: int, seen: bool) -> None:
    """The last transaction is read again at every start."""
    position = PositionRecord(
        finished=None,
        resume=SourcePosition("binlog.000007", 100),
        gtid_set=f"{UUID}:1-5" if gtid else None,
        open=None,
        tails={},
    )
    history = TableHistory(KNOWN, Filter(Filters()), position)
    query = Query(Statement("s", "ALTER TABLE t ADD c INT", {}), "", ("s",), "utf8mb4")

    assert history.follow(query, gtid, SourcePosition("binlog.000007", offset)) is not seen
    assert (history.drain() == Redefined()) is seen
    assert history.drain() == Redefined()


@pytest.mark.parametrize("do", [("s",), ()])
def test_a_definition_that_is_listed_as_not_understood_leaves_all_tables_known(do: tuple[str, ...]) -> None:
    history = TableHistory(KNOWN, Filter(Filters(do=do, unknown_ddl=("DROP GHOST *", "ALTER *"))))

    def follow(sql: str) -> bool:
        return history.follow(Query(Statement("s", sql, {}), "", (), "utf8mb4"), None, SourcePosition("b.1", 9))

    assert not follow("drop ghost t")
    assert history.known(TableName("s", "t")) is not None
    assert follow("ALTER TABLE t ADD c INT")  # is understood: that it is listed is nothing to it
    assert follow("DROP SPECTRE t")
    assert history.known(TableName("s", "t")) is None
