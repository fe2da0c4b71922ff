"""Statements with bytes that are invalid in the session's character set."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import pytest

from connector.config.filters import Filters
from connector.errors import Unsupported, ValueNotRepresentable
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import PositionAdvance, Statement, TransactionBatch
from connector.log.transaction.definition import Definitions
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import SourcePosition
from connector.mysql.binlog.events.query import query
from connector.mysql.schema_history.table_history import TableHistory
from connector.mysql.transforms.filters import Filter
from connector.mysql.values.charsets import decode, decode_leniently, shown
from connector.targets.ddl.plan import plan
from connector.targets.target_schema import TargetSchema
from tests.support.binlog import ALL, changes, row_changes, whole_file
from tests.support.binlog_command import binlog
from tests.support.binlog_writer import LogWriter

RECORDED = Path("tests/testdata/binlog")
UTF8 = b"\x04" + struct.pack("<HHH", 255, 255, 255)
KEEPING = Filter(Filters(), keeps_statements=True)


def said(log: LogWriter, folder: Path, filters: Filter = ALL) -> list[Statement]:
    path = folder / "log.000001"
    path.write_bytes(log.data)
    return [change for change in changes(whole_file(path, filters=filters)) if isinstance(change, Statement)]


def test_a_comment_of_another_charset_is_shown_and_the_definition_applied() -> None:
    found = whole_file(RECORDED / "ddl-stray-byte.000001")
    statements = [change for change in changes(found) if isinstance(change, Statement)]
    last = statements[-1]
    assert last.sql == "CREATE TABLE c2 (id INT) /* caf\\xe9 */"
    assert replay.TEXT not in last.options
    assert TableName("n", "c2") in plan(last, TargetSchema(), 0).target_schema


def test_a_procedure_of_an_ignored_schema_stops_nothing() -> None:
    found = whole_file(RECORDED / "procedure-binary-literal.000001", filters=Filter(Filters(do=("n",))))
    assert not [change for change in changes(found) if isinstance(change, Statement) and "PROCEDURE" in change.sql]
    assert row_changes(found, "c1")
    assert isinstance(found[0], TransactionBatch | PositionAdvance)


def test_thl_binlog_shows_the_text_and_the_invalid_bytes() -> None:
    for name in ("ddl-stray-byte.000001", "procedure-binary-literal.000001"):
        told = binlog(RECORDED / name)
        assert told.code == 0, told.err
        assert "\\\\x" in told.out.decode()
        assert binlog(RECORDED / name, "--format", "tungsten").code == 0
    (procedure,) = [
        change
        for transaction in told.objects
        for change in transaction["changes"]
        if "PROCEDURE" in change.get("sql", "")
    ]
    assert procedure["sql"].endswith("SELECT _binary '\\xff'")
    assert base64.b64decode(procedure["options"][replay.TEXT]).endswith(b"SELECT _binary '\xff'")


def test_definition_with_invalid_bytes_is_published_and_never_applied(tmp_path: Path) -> None:
    log = LogWriter()
    log.query(b"CREATE TABLE t (b INT COMMENT '\xff') -- \xe9", state=UTF8)
    log.query(b"CREATE PROCEDURE p() SELECT _binary '\xff'", state=UTF8)
    log.query(b"/*! ALTER TABLE t ADD c INT /* \xe9 */ */", state=UTF8)
    table, procedure, altered = said(log, tmp_path)
    assert table.sql == "CREATE TABLE t (b INT COMMENT '\\xff') -- \\xe9"
    with pytest.raises(Unsupported):
        plan(table, TargetSchema(), 0)
    assert plan(procedure, TargetSchema(), 0).operations == ()
    assert replay.TEXT not in altered.options


def test_tables_are_found_beside_invalid_bytes(tmp_path: Path) -> None:
    log = LogWriter()
    log.query(b"/* \xe9 */ DROP TABLE o.a, /* \xff */ s.t", state=UTF8)
    log.query(b"TRUNCATE o.t /* \xe9 */", state=UTF8)
    log.query(b"CREATE TABLE s.u (a INT COMMENT 'x') /* \xe9 */", state=UTF8)
    assert [one.sql for one in said(log, tmp_path, Filter(Filters(do=("s",))))] == [
        "/* \\xe9 */ DROP TABLE s.t",
        "CREATE TABLE s.u (a INT COMMENT 'x') /* \\xe9 */",
    ]


def test_kept_statement_has_its_original_bytes(tmp_path: Path) -> None:
    log = LogWriter()
    log.begin()
    log.query(b"INSERT INTO t VALUES (_binary '\xff\\'')", state=UTF8)
    log.query(b"INSERT INTO t VALUES (1) /* \xff */", state=UTF8)
    log.commit()
    bytes_of, plain = said(log, tmp_path, KEEPING)
    assert base64.b64decode(bytes_of.options[replay.TEXT]) == b"INSERT INTO t VALUES (_binary '\xff\\'')"
    assert replay.TEXT not in plain.options


def test_label_with_invalid_bytes_makes_the_table_unknown() -> None:
    history = TableHistory(Definitions(), ALL)
    for number, sql in enumerate((b"CREATE TABLE t (a ENUM('\xff'))", b"CREATE TABLE u (a INT) -- \xff")):
        body = struct.pack("<IIBHH", 1, 0, 1, 0, len(UTF8)) + UTF8 + b"s\0" + sql
        history.follow(query(body, 0), None, SourcePosition("log.000001", 100 + number))
    tables = history.drain().tables
    unknown, known = tables[TableName("s", "t")], tables[TableName("s", "u")]
    assert unknown is not None
    assert "bytes that are invalid" in unknown.unknown
    assert known is not None
    assert not known.unknown


@pytest.mark.parametrize(
    ("charset", "text", "lenient"),
    [
        ("utf8mb4", b"a\xe9b\xc3\xa9", "a\\xe9bé"),
        ("binary", b"\xff'", "\\xff'"),
        ("latin1", b"\xe9\x80", "é€"),
        ("cp1251", b"\x98'\xff", "\\x98'я"),
        ("sjis", b"\x8f\xff'\x95\x5c'", "\\x8f\\xff'表'"),
        ("sjis", b"\xfc\x5c'", "\\xfc\\x5c'"),  # the parser passes both
        ("gbk", b"\xff'\xd6\xd0", "\\xff'中"),
        ("ujis", b"\xff\x5c\xa4\xa2", "\\xff\\あ"),
        ("sjis", b"'\x81\x5f' \x5c", "'\\x81\\x5f' \\"),  # a backslash of two bytes escapes nothing
        ("ujis", b"'\xa1\xc0' \x5c", "'\\xa1\\xc0' \\"),
    ],
)
def test_invalid_bytes_are_shown_as_hex_beside_valid_text(charset: str, text: bytes, lenient: str) -> None:
    assert shown(decode_leniently(text, charset)) == lenient


@pytest.mark.parametrize("charset", ["utf8mb4", "latin1", "sjis", "gbk", "gb18030", "ucs2"])
def test_valid_text_is_unchanged(charset: str) -> None:
    codec = {"utf8mb4": "utf-8", "latin1": "cp1252", "ucs2": "utf-16-be"}.get(charset, charset)
    text = ("abc" if charset == "latin1" else "表 x") * 3
    assert decode_leniently(text.encode(codec), charset) == decode(text.encode(codec), charset) == text


def test_impossible_session_charset_is_refused() -> None:
    with pytest.raises(ValueNotRepresentable):
        decode_leniently(b"\xd8\x00", "ucs2")
