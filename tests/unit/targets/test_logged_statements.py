"""Which changes logged as statements a target executes, and what it sets for them."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from connector.ddl.syntax.parse import parse
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.logged_statements import check_statement
from connector.targets.mysql.ddl.other_statement import temporary_table_of, trigger_of
from connector.targets.mysql.statement_session import settings_of, text_of, variables_of

OPTIONS = {
    "sql_auto_is_null": "0",
    "autocommit": "1",
    "foreign_key_checks": "1",
    "unique_checks": "0",
    "sql_mode": str((1 << 21) | (1 << 2) | (1 << 5)),  # STRICT_TRANS_TABLES, ANSI_QUOTES, ONLY_FULL_GROUP_BY
    "character_set_client": "latin1",
    "##character_set_client": "8",
    "collation_connection": "8",
    "collation_server": "255",
    "timestamp": "1700000000.123456",
}


def said(sql: str, **more: str) -> Statement:
    return Statement("shop", sql, OPTIONS | more)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (NOW(), RAND(), @a, LAST_INSERT_ID())",
        "/* by us */ insert into user (id) VALUES (1)",
        "REPLACE user (id) VALUES (1)",
        "UPDATE shop.version SET version = 'UUID()', user = `sleep` WHERE sysdate = 1",
        "DELETE a FROM a JOIN b USING (id)",
        "WITH w AS (SELECT 1) UPDATE t JOIN w SET a = 2",
        "/*!50000 INSERT */ INTO t VALUES (1)",
        "DELETE FROM t WHERE a = ';' ;",
    ],
)
def test_statement_whose_effect_the_log_decides_is_executed(sql: str) -> None:
    check_statement(said(sql))


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("INSERT INTO t VALUES (UUID())", "UUID() has another value"),
        ("INSERT INTO t SELECT sysdate ( 6 )", "SYSDATE() has another value"),
        ("INSERT INTO t VALUES (CURRENT_USER)", "CURRENT_USER() has another value"),
        ("UPDATE t SET a = version()", "VERSION() has another value"),
        ("UPDATE t SET a = /*!99999 UUID() */ 1", "UUID() has another value"),
        ("UPDATE t SET a = @@server_id", "@@server_id has another value"),
        ("SELECT shop.f(1)", "stored function"),
        ("CREATE TEMPORARY TABLE t (a INT)", "a definition among changes"),
        ("ROLLBACK TO SAVEPOINT a", "rolled back"),
        ("INSERT INTO t VALUES ('a", "not understood"),
        ("DELETE FROM t; DROP TABLE t", "several statements"),
    ],
)
def test_statement_whose_text_does_not_decide_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(Unsupported) as caught:
        check_statement(said(sql))
    assert reason in caught.value.message


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"dialect": "mariadb"}, "a MariaDB"),
        ({"pseudo_thread_id": "7"}, "temporary table"),
        ({"error_code": "1062"}, "ended at the source with error 1062"),
        ({"load_data_not_logged": "1"}, "does not have the file"),
        ({"invoker": "a@b"}, "invoker"),
        ({"a_new_option": "1"}, "a_new_option"),
        ({"load_data_from": "1", "sql_mode": str(1 << 20)}, "NO_BACKSLASH_ESCAPES"),
    ],
)
def test_statement_whose_options_do_not_decide_is_refused(more: dict[str, str], reason: str) -> None:
    with pytest.raises(Unsupported) as caught:
        check_statement(said("INSERT INTO t VALUES (1)", **more))
    assert reason in caught.value.message


@pytest.mark.parametrize("name", ["sql_mode", "timestamp", "character_set_client", "collation_connection"])
def test_statement_without_an_option_of_its_session_is_refused(name: str) -> None:
    statement = said("INSERT INTO t VALUES (1)")
    del statement.options[name]
    with pytest.raises(Unsupported, match=name):
        check_statement(statement)


def test_delete_that_mysql_marks_as_if_it_used_temporary_tables_is_executed() -> None:
    check_statement(said("DELETE a FROM a JOIN b USING (id)", pseudo_thread_id="7"))


SESSION: Any = SimpleNamespace(
    explicit_timestamps=True, utf8mb4_collation=255, rows=lambda sql: [("UTC",)] if "system_time_zone" in sql else []
)


def test_session_of_a_statement_has_its_options_and_the_defaults_of_those_that_are_not_logged() -> None:
    found = dict(one.split(" = ", 1) for one in settings_of(said("INSERT …", insert_id="41", rand_seed1="5"), SESSION))
    assert found == {
        "sql_mode": "'ANSI_QUOTES,STRICT_TRANS_TABLES'",
        "timestamp": "1700000000.123456",
        "group_concat_max_len": "DEFAULT",
        "foreign_key_checks": "1",
        "unique_checks": "0",
        "sql_auto_is_null": "0",
        "auto_increment_increment": "1",
        "auto_increment_offset": "1",
        "lc_time_names": "0",
        "collation_connection": "8",
        "collation_server": "255",
        "insert_id": "41",
        "rand_seed1": "5",
        "character_set_client": "latin1",
    }
    found = dict(one.split(" = ", 1) for one in settings_of(said("…", auto_increment_increment="7"), SESSION))
    assert found["auto_increment_increment"] == "7"


@pytest.mark.parametrize(
    ("more", "setting"),
    [
        ({"time_zone": "+05:30"}, "time_zone = '+05:30'"),
        ({"time_zone": "SYSTEM", "system_time_zone": "UTC"}, "time_zone = 'SYSTEM'"),
        ({"default_collation_for_utf8mb4": "45"}, "default_collation_for_utf8mb4 = 45"),
        ({"lc_time_names": "4"}, "lc_time_names = 4"),
    ],
)
def test_option_that_is_logged_is_set(more: dict[str, str], setting: str) -> None:
    assert setting in settings_of(said("INSERT …", **more), SESSION)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"time_zone": "SYSTEM", "system_time_zone": "CET"}, "system time zone, CET; the target's is UTC"),
        ({"time_zone": "SYSTEM"}, "which the log does not have"),
        ({"sql_mode": str(1 << 40)}, "unknown modes"),
        ({"explicit_defaults_for_timestamp": "0"}, "explicit_defaults_for_timestamp"),
    ],
)
def test_option_that_the_target_does_not_have_is_refused(more: dict[str, str], reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        settings_of(said("INSERT …", **more), SESSION)


def test_text_has_the_bytes_of_its_session() -> None:
    assert text_of(said("INSERT … ('é')")) == "INSERT … ('é')".encode("cp1252")
    assert text_of(said("INSERT ('é')", character_set_client="utf8mb4")) == "INSERT ('é')".encode()
    assert text_of(said("INSERT '\\x81'", text_base64=base64.b64encode(b"INSERT '\x81'").decode())) == b"INSERT '\x81'"
    with pytest.raises(Unsupported, match="sjis"):
        text_of(said("INSERT ('日')", character_set_client="sjis"))


def test_variables_are_set_with_their_types_and_one_that_is_null_with_that_of_a_text() -> None:
    found = variables_of(said("INSERT …", **{"@a`b": "_latin1 0xe9", "@n": "NULL", "insert_id": "1"}))
    assert found == ["@`a``b` = _latin1 0xe9", "@`n` = _latin1 '' COLLATE latin1_swedish_ci", "@`n` = NULL"]


@pytest.mark.parametrize(
    ("sql", "creates", "name", "on"),
    [
        (
            "CREATE DEFINER=`a`@`%` TRIGGER one BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
            True,
            "shop.one",
            "shop.t",
        ),
        ("create trigger if not exists x.`one` after update on x.t for each row begin end", True, "x.one", "x.t"),
        ("CREATE TRIGGER one BEFORE DELETE ON x.t FOR EACH ROW DO 1", True, "x.one", "x.t"),
        ("DROP TRIGGER IF EXISTS shop.one", False, "shop.one", None),
        ("DROP TRIGGER one", False, "shop.one", None),
    ],
)
def test_trigger_is_known_by_its_statement(sql: str, creates: bool, name: str, on: str | None) -> None:
    found = trigger_of(parse(Statement("shop", sql, {}))[0].tokens, "shop")
    assert found is not None
    assert (found.creates, str(found.name), on and str(found.on)) == (creates, name, on)


@pytest.mark.parametrize(
    "sql",
    ["DROP VIEW trigger_v", "CREATE USER `TRIGGER`", "CREATE TEMPORARY TABLE t (`TRIGGER` INT)", "DROP FUNCTION f"],
)
def test_statement_about_something_else_is_about_no_trigger(sql: str) -> None:
    assert trigger_of(parse(Statement("shop", sql, {}))[0].tokens, "shop") is None


def test_temporary_table_is_known_by_its_statement() -> None:
    def table(sql: str) -> TableName | None:
        return temporary_table_of(parse(Statement("shop", sql, {}))[0].tokens, "shop")

    assert table("CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT)") == TableName("shop", "t")
    assert table("create /* a */ temporary table `x`.`t` select 1") == TableName("x", "t")
    assert table("DROP TEMPORARY TABLE t") is None
    assert table("CREATE VIEW t AS SELECT 1") is None
