"""`thl list --format sql`: literals, conditions, sessions. Integration tests execute the SQL."""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import pytest

from connector.errors import LogDamaged, Unsupported, ValueNotRepresentable
from connector.inspect.formats.printing import Layout, View, log_printer
from connector.inspect.formats.sql_literals import condition, literal
from connector.inspect.formats.sql_session import statement_bytes
from connector.inspect.thl_events.log import Listed
from connector.log.transaction import statement_options as replay
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.patterns import column_patterns
from tests.unit.inspect.test_listing import a_fragment, a_statement, rows


def a_column(type_: str, charset: str = "") -> dict[str, Any]:
    return {"name": "c`1", "type": type_, "unsigned": False, "charset": charset, "labels": [], "nullable": True}


def sql(*fragments: Listed, out: io.BytesIO | None = None, **options: Any) -> str:
    out = out or io.BytesIO()
    printer = log_printer(View(layout=Layout.SQL, **options), out)
    for one in fragments:
        printer.show(one)
    printer.flush()
    return out.getvalue().decode()


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        (a_column("int"), None, "NULL"),
        (a_column("bigint"), -5, "-5"),
        (a_column("bigint"), "18446744073709551615", "18446744073709551615"),
        (a_column("decimal(10,2)"), "-1.50", "-1.50"),
        (a_column("double"), 0.1, "0.1e0"),
        (a_column("double"), 1e300, "1e+300"),
        (a_column("float"), -0.0, "-0.0e0"),
        (a_column("bit(9)"), b"\x01\xff", "511"),
        (a_column("varbinary(9)", "binary"), b"\x00'", "x'0027'"),
        (a_column("blob"), b"", "''"),
        (a_column("varchar(9)", "latin1"), "it's \\ \0\n\r\t\x1aü", "'it''s \\\\ \\0\\n\\r\\t\\Zü'"),
        (a_column("varchar(9)", "latin1"), "\x1b[2J", "_utf8mb4 x'1b5b324a'"),
        (a_column("varchar(9)", "latin1"), "\u2028", "_utf8mb4 x'e280a8'"),
        (a_column("json"), '{"a": 1.5, "b": 1e10}', '\'{"a": 1.5, "b": 1e10}\''),
        (
            a_column("json"),
            '{"a\\"b": [2.0, 1.10], "c": "3.30"}',
            """JSON_SET('{"a\\\\"b": [2.0, 1.10], "c": "3.30"}', '$."a\\\\"b"[1]', CAST('1.10' AS DECIMAL(65, 2)))""",
        ),
        (a_column("datetime(3)"), "0000-00-00 00:00:00.000", "'0000-00-00 00:00:00.000'"),
    ],
)
def test_a_value_is_a_literal(column: dict[str, Any], value: object, shown: str) -> None:
    assert literal(column, value) == shown


def test_a_value_without_a_literal_is_refused() -> None:
    for column, value in ((a_column("varchar(9)", "utf8mb4"), b"\xff"), (a_column("double"), float("nan"))):
        with pytest.raises(ValueNotRepresentable):
            literal(column, value)


@pytest.mark.parametrize(
    ("column", "value", "of_key", "shown"),
    [
        (a_column("int"), None, False, "`c``1` IS NULL"),
        (a_column("int"), 5, False, "`c``1` = 5"),
        (a_column("varchar(9)", "utf8mb4"), "a", True, "`c``1` = 'a'"),
        (
            a_column("varchar(9)", "utf8mb4"),
            "a",
            False,
            "CAST(CONVERT(`c``1` USING utf8mb4) AS BINARY) = CAST('a' AS BINARY)",
        ),
        (a_column("float"), -0.0, False, "`c``1` = 0 AND CAST(`c``1` AS CHAR) LIKE '-%'"),
        (a_column("double"), 0.0, False, "`c``1` = 0 AND CAST(`c``1` AS CHAR) NOT LIKE '-%'"),
        (a_column("geometry"), b"\x0f", False, "HEX(`c``1`) = '0F'"),
        (a_column("binary(1)", "binary"), b"\x0f", False, "`c``1` = x'0f'"),
        (a_column("time"), "-00:00:01", False, "`c``1` = '-00:00:01'"),
    ],
)
def test_a_condition_finds_exactly_the_value(column: dict[str, Any], value: object, of_key: bool, shown: str) -> None:
    assert condition(column, value, of_key=of_key) == shown


def test_an_event_is_a_transaction_of_statements() -> None:
    keyed = rows("update", ([2, "a", None], [3, "b", b"\x01"]))
    told = sql(a_fragment(rows("insert", (None, [2, "ü", None]), (None, [3, "", b"\x00"])), keyed, gtid="u:7"))
    assert told == (
        "/* SEQ# = 3582 / GTID = u:7 */\n"
        "BEGIN;\n"
        "SET character_set_client = utf8mb4, collation_connection = utf8mb4_bin, foreign_key_checks = 0, "
        "sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00';\n"
        "INSERT INTO `test`.`user` (`id`, `name`, `photo`) VALUES\n(2, 'ü', NULL),\n(3, '', x'00');\n"
        "UPDATE `test`.`user` SET `id` = 3, `name` = 'b', `photo` = x'01' WHERE `id` = 2;\n"
        "COMMIT;\n"
        "/* EVENTID = mysql-bin.000007:0000000625753710;0 */\n"
    )


def a_load(part: Part, *changes: dict[str, Any], **more: Any) -> Listed:
    metadata = LoadEvent("l1", part, TableName("test", "user")).metadata()
    return a_fragment(*changes, kind="load", metadata=metadata, **more)


def test_rows_of_a_load_replace_those_that_are_there() -> None:
    lines = sql(a_load(Part.ROWS, rows("read", (None, [2, "ü", None])))).splitlines()
    assert lines[1:3] == ["/* LOAD = l1 / rows of test.user */", "BEGIN;"]
    assert lines[4:7] == ["REPLACE INTO `test`.`user` (`id`, `name`, `photo`) VALUES", "(2, 'ü', NULL);", "COMMIT;"]
    absent = sql(a_load(Part.ROWS, rows("delete", ([2, "ü", None], None))))
    assert "DELETE FROM `test`.`user` WHERE `id` = 2;\n" in absent


def test_load_of_a_table_without_a_key_deletes_its_rows_once() -> None:
    first = a_load(Part.WHOLE, rows("read", (None, [2, "ü", None]), key=()), last_frag=False)
    last = a_load(Part.WHOLE, rows("read", (None, [2, "ü", None]), key=()), fragno=1)
    lines = sql(first, last).splitlines()
    assert lines[3].startswith("SET character_set_client = utf8mb4, collation_connection = utf8mb4_bin, foreign_key_ch")
    assert lines[4:6] == ["DELETE FROM `test`.`user`;", "REPLACE INTO `test`.`user` (`id`, `name`, `photo`) VALUES"]
    assert [line for line in lines if "DELETE" in line or line == "COMMIT;"] == [
        "DELETE FROM `test`.`user`;",
        "COMMIT;",
    ]


def test_begin_of_a_load_makes_a_table_that_is_missing() -> None:
    schema = a_statement("test", "CREATE DATABASE IF NOT EXISTS `test`")
    lines = sql(a_load(Part.BEGIN, schema, a_statement("test", "CREATE TABLE `user` (\n `id` INT)"))).splitlines()
    assert "BEGIN;" not in lines
    assert "COMMIT;" not in lines
    made = lines.index("CREATE DATABASE IF NOT EXISTS `test`;")
    assert lines.index("USE `test`;") > made
    assert "CREATE TABLE IF NOT EXISTS `user` (" in lines


def test_load_that_its_metadata_do_not_name_is_damage() -> None:
    with pytest.raises(LogDamaged) as refused:
        sql(a_fragment(rows("read", (None, [2, "ü", None])), kind="load"))
    assert {"seqno": 3582, "at": "thl.firstrep-0@1234"}.items() <= refused.value.where.items()


def test_a_row_without_a_key_is_found_by_all_its_values() -> None:
    told = sql(a_fragment(rows("delete", ([3, "b", None], None), key=())))
    assert "DELETE FROM `test`.`user` WHERE `id` = 3 AND CAST(CONVERT(`name` USING utf8mb4) AS BINARY)" in told
    assert "AND `photo` IS NULL LIMIT 1;\n" in told


def test_excluded_columns_are_neither_set_nor_compared() -> None:
    change = rows("update", ([3, "b", None], [4, "c", None]), key=())
    told = sql(a_fragment(change), excluded_columns=column_patterns(["te*.user.n?me"]))
    assert "UPDATE `test`.`user` SET `id` = 4, `photo` = NULL WHERE `id` = 3 AND `photo` IS NULL LIMIT 1;\n" in told


def test_a_row_that_nothing_identifies_is_refused() -> None:
    change = rows("delete", ([3, "b", None], None), key=())
    with pytest.raises(Unsupported) as refused:
        sql(a_fragment(change), excluded_columns=column_patterns(["*.*.*"]))
    assert refused.value.where["table"] == "test.user"


def test_a_row_that_lacks_an_image_is_damage() -> None:
    with pytest.raises(LogDamaged):
        sql(a_fragment(rows("update", (None, [3, "b", None]))))


def test_a_definition_has_no_transaction_and_names_its_schema_again() -> None:
    event = a_fragment(a_statement("a`b", "DROP TABLE x", sql_mode="0"), kind="ddl", rows=0)
    told = sql(event, event)
    assert told.count("USE `a``b`;\n") == 2
    assert told.count("sql_mode = 0") == 1
    assert "BEGIN" not in told
    assert "COMMIT" not in told


def test_a_session_is_set_where_it_changes() -> None:
    one = a_statement("s", "one", sql_mode="1", time_zone="+01:00", timestamp="1.5", autocommit="1", insert_id="4")
    told = sql(a_fragment(one, one, rows("delete", ([1, "", None], None)), one)).splitlines()
    assert told[2:9] == [
        "USE `s`;",
        "SET INSERT_ID = 4;",
        "SET auto_increment_increment = 1, auto_increment_offset = 1, lc_time_names = 0, time_zone = '+01:00', "
        "sql_mode = 1, timestamp = 1.5;",
        "one;",
        "SET INSERT_ID = 4;",
        "one;",
        "SET character_set_client = utf8mb4, collation_connection = utf8mb4_bin, foreign_key_checks = 0, "
        "sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00';",
    ]
    assert told[10:12] == ["SET INSERT_ID = 4;", "SET time_zone = '+01:00', sql_mode = 1;"]


def test_a_schema_is_named_in_utf8_whatever_the_last_client_had() -> None:
    latin1 = a_statement("s", "one", character_set_client="latin1")
    told = sql(a_fragment(latin1, a_statement("ü", "two", character_set_client="latin1"))).splitlines()
    assert told[5:8] == ["SET character_set_client = utf8mb4;", "USE `ü`;", "SET character_set_client = latin1;"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("one;", "one;\n"),
        ("one -- two", "one -- two\n;\n"),
        ("BEGIN a; b; END", "DELIMITER //\nBEGIN a; b; END\n//\nDELIMITER ;\n"),
        ("a; // $$ b", "DELIMITER ;;\na; // $$ b\n;;\nDELIMITER ;\n"),
        ("a;;// $$ @@@ \\\\\\ ~~~~ b", "DELIMITER //0//\na;;// $$ @@@ \\\\\\ ~~~~ b\n//0//\nDELIMITER ;\n"),
        ("CREATE TABLE t (a INT) START TRANSACTION", "CREATE TABLE t (a INT);\n"),
    ],
)
def test_a_statement_ends_where_the_client_must_end_it(text: str, told: str) -> None:
    assert told in sql(a_fragment(a_statement("", text)))


def test_an_option_that_is_not_understood_is_named() -> None:
    assert "/* not set: alter = start* / */\n" in sql(a_fragment(a_statement("", "x", alter="start*/")))


def test_the_character_set_of_a_schema_is_no_option_of_the_session() -> None:
    noted = {replay.SCHEMA_CHARSET: "binary", replay.TABLE_EXISTED: "1"}
    assert not re.search("character_set|existed", sql(a_fragment(a_statement("", "x", **noted))))


def test_a_file_for_load_data_is_refused_with_the_way_on() -> None:
    with pytest.raises(Unsupported) as refused:
        sql(a_fragment(a_statement("s", "LOAD DATA", load_data_file="f")))
    assert "--format json" in refused.value.hint


def test_a_rolled_back_event_and_one_that_is_none() -> None:
    assert "ROLLBACK;\n" in sql(a_fragment(a_statement("s", "x"), outcome="rollback"))
    assert sql(a_fragment(a_statement("s", "x"), voided=True)) == "/* SEQ# = 3582 / FRAG# = 0 is not an event */\n"


@pytest.mark.parametrize(
    ("charset", "text", "data"),
    [
        ("utf8mb4", "é", b"\xc3\xa9"),
        ("latin1", "é€", b"\xe9\x80"),
        ("latin1", "plain", b"plain"),
        ("gbk", "中", b"\xd6\xd0"),
        ("sjis", "日", b"\x93\xfa"),
    ],
)
def test_a_statement_has_the_character_set_of_its_client(charset: str, text: str, data: bytes) -> None:
    assert statement_bytes(text, {"character_set_client": charset}) == data


def test_a_statement_that_its_character_set_lacks_is_refused_and_kept_bytes_are_printed() -> None:
    with pytest.raises(Unsupported):
        statement_bytes("中", {"character_set_client": "latin1"})
    kept = base64.b64encode(b"\xff").decode()
    assert statement_bytes("\\xff", {"character_set_client": "utf8mb4", "text_base64": kept}) == b"\xff"
