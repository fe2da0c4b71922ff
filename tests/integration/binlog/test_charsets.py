"""Every character of every multi-byte set, through a real binary log and an initial load, equals its SELECT."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from connector.config.filters import Filters
from connector.errors import ValueNotRepresentable
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.layout import Column, TableName
from connector.log.transaction.position import AfterGtids
from connector.mysql.transforms.filters import Filter
from connector.mysql.values import charsets
from connector.mysql.values.multibyte import FOUR, LONGEST, codes
from connector.mysql.values.text import multibyte_text
from tests.support.binlog import changes, images, read_from, row_changes
from tests.support.loading import as_source, read_rows, take
from tests.support.make_charsets import SUPPLEMENTARY, candidates, four_bytes, lenient, with_meaning
from tests.support.servers.environment import SqlServer

SCHEMA = "capture_charsets"
SETS = sorted(LONGEST)
FACTS = json.loads(Path("tests/testdata/charsets.json").read_text())["sets"]
AT_ONCE = 4000  # characters of a text
# Two characters, in the bytes of the set.
WORDS = {
    "big5": b"\xb3\x5c\xa5\x5c",  # the second bytes are backslashes
    "cp932": b"\x8a\xbf\x95\x5c",
    "eucjpms": b"\xb4\xc1\xad\xa1",
    "euckr": b"\xc7\xd1\x8c\x63",
    "gb18030": b"\xd6\xd0\x81\x39\xef\x30",
    "gb2312": b"\xd6\xd0\xce\xc4",
    "gbk": b"\xd6\xd0\x81\x5c",
    "sjis": b"\x8a\xbf\x95\x5c",
    "ujis": b"\xb4\xc1\x8f\xb0\xa1",
}


def test_every_character_equals_its_select(mysql_server: SqlServer) -> None:
    start, cursor = begin(mysql_server)
    for charset in SETS:
        fill(cursor, charset)
    cursor.execute("CREATE TABLE finished (id int)")

    arrived = rows_by_table(changes(read_from(mysql_server, AfterGtids(start), finished, seconds=300)))
    loaded = rows_by_table(take(as_source(mysql_server, do=(SCHEMA,))))

    for charset in SETS:
        cursor.execute(f"SELECT id, HEX(CONVERT(v USING utf8mb4)) FROM {charset}")
        said = {key: bytes.fromhex(text).decode() for key, text in cursor.fetchall()}
        assert arrived[charset] == said, charset
        assert loaded[charset] == said, charset
        assert sum(map(len, said.values())) == FACTS[charset]["characters"], charset


def rows_by_table(found: Iterable[Rows | Statement]) -> dict[str, dict[int, str]]:
    by_table: dict[str, dict[int, str]] = {}
    for change in found:
        if isinstance(change, Rows):
            rows = by_table.setdefault(change.layout.name.table, {})
            rows |= {after[0]: after[1] for _, after in images(change) if after}
    return by_table


def fill(cursor: Any, charset: str) -> None:
    """A table of all characters of a set: a row each, but gb18030's of four bytes by the thousands."""
    cursor.execute(f"CREATE TABLE {charset} (id int auto_increment primary key, v longtext character set {charset})")
    for sql in candidates(charset):
        cursor.execute(f"INSERT INTO {charset} (v) SELECT c FROM ({with_meaning(charset, sql)}) found")
    if LONGEST[charset] == 4:
        numbers = [*range(FOUR), *range(SUPPLEMENTARY, SUPPLEMENTARY + 0x100000)]
        for at in range(0, len(numbers), AT_ONCE):
            text = b"".join(map(four_bytes, numbers[at : at + AT_ONCE])).hex()
            cursor.execute(f"INSERT INTO {charset} (v) VALUES (CONVERT(x'{text}' USING {charset}))")


def begin(server: SqlServer) -> tuple[str, Any]:
    cursor = lenient(server).cursor()
    cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
    cursor.execute("SELECT @@GLOBAL.gtid_executed")
    start = cursor.fetchone()[0]
    cursor.execute(f"CREATE DATABASE {SCHEMA}")
    cursor.execute(f"USE {SCHEMA}")
    return start, cursor


def finished(found: list[Any]) -> bool:
    return any("finished" in getattr(change, "sql", "") for change in changes(found[-3:]))


@pytest.mark.parametrize("charset", SETS)
def test_names_labels_and_statements_of_every_charset_are_decoded(mysql_server: SqlServer, charset: str) -> None:
    word = WORDS[charset]
    text = multibyte_text(word, codes(charset), LONGEST[charset])
    start, cursor = begin(mysql_server)
    session, of_set = cursor.connection, b"character set " + charset.encode()
    session.query(f"SET NAMES {charset}")
    session.query(
        b"CREATE TABLE `%s` (`%s` enum('x','%s') %s, s set('a','%s','b') %s, c char(10) %s, f char(255) %s,"
        b" v varchar(20) %s, w varchar(1000) %s, t tinytext %s)" % (word, word, word, of_set, word, *[of_set] * 6)
    )
    session.query(
        b"INSERT INTO `%s` VALUES ('%s','%s,b','%s','%s','%s','%s','%s')"
        % (word, word, word, word, word * 50, word, word * 500, word)
    )
    session.query("SET NAMES utf8mb4")
    cursor.execute(f"SELECT * FROM `{text}`")
    said = list(cursor.fetchone())
    cursor.execute(
        f"SELECT column_name, column_type FROM information_schema.columns"
        f" WHERE table_schema = '{SCHEMA}' AND table_name = '{text}' ORDER BY ordinal_position"
    )
    types = cursor.fetchall()
    cursor.execute("CREATE TABLE finished (id int)")

    found = list(changes(read_from(mysql_server, AfterGtids(start), finished)))

    (rows,) = [change for change in found if isinstance(change, Rows)]
    assert [after for _, after in images(rows)] == [said]
    assert said[:2] == [text, f"{text},b"]
    assert rows.layout.name.table == text
    assert [(column.name, full(column)) for column in rows.layout.columns] == list(types)
    assert {column.charset for column in rows.layout.columns} == {charset}
    (loaded,) = [change for change in take(as_source(mysql_server, do=(SCHEMA,))) if isinstance(change, Rows)]
    assert (loaded.layout, images(loaded)) == (rows.layout, images(rows))
    created = [change.sql for change in found if isinstance(change, Statement)][-2]
    assert f"CREATE TABLE `{text}` (`{text}` enum('x','{text}')" in created


SINGLE = ["latin1", "hebrew", "koi8r", "cp1251", "tis620", "ucs2", "utf16", "utf16le", "utf32", "utf8mb3", "swe7"]


@pytest.mark.parametrize("charset", SINGLE)
def test_an_initial_load_reads_other_sets_as_the_log_does(mysql_server: SqlServer, charset: str) -> None:
    start, cursor = begin(mysql_server)
    cursor.execute(
        "CREATE TABLE t (id int primary key, v varchar(300), c char(9), e enum('x','yz'), s set('a','b'),"
        f" d decimal(9,2), j json) DEFAULT CHARACTER SET {charset}"
    )
    known = "".join(char for char in charsets.alphabet(charset) if char not in "\0\ufffd") or "a\u20ac\u4e2d"
    rows = "(1, %s, 'a ', 'yz', 'a,b', 1.5, '[\"\u20ac\"]'), (2, '', '', 'x', '', 0, '1')"
    cursor.execute(f"INSERT INTO t VALUES {rows}", known)
    cursor.execute("CREATE TABLE finished (id int)")

    (streamed,) = [c for c in changes(read_from(mysql_server, AfterGtids(start), finished)) if isinstance(c, Rows)]
    (loaded,) = [c for c in take(as_source(mysql_server, do=(SCHEMA,))) if isinstance(c, Rows)]

    assert (loaded.layout, images(loaded)) == (streamed.layout, images(streamed))
    assert images(loaded)[0][1] == [1, known, "a", "yz", "a,b", "1.50", '["\u20ac"]']


def full(column: Column) -> str:
    return column.type + ("(" + ",".join(f"'{label}'" for label in column.labels) + ")" if column.labels else "")


@pytest.mark.parametrize(("charset", "raw"), [("gbk", "a2a0"), ("euckr", "c9a1"), ("gb18030", "fe39fe39")])
def test_invalid_stored_text_is_refused(mysql_server: SqlServer, charset: str, raw: str) -> None:
    start, cursor = begin(mysql_server)
    cursor.execute(f"CREATE TABLE t (v varchar(20) character set {charset})")
    cursor.execute(f"INSERT INTO t VALUES (CONVERT(x'6162{raw}' USING {charset}))")
    cursor.execute("SELECT HEX(v), CONVERT(v USING utf8mb4) FROM t")
    assert cursor.fetchone() == (f"6162{raw.upper()}", "ab?")
    cursor.execute("CREATE TABLE finished (id int)")

    with pytest.raises(ValueNotRepresentable) as caught:
        read_from(mysql_server, AfterGtids(start), finished)
    where = caught.value.where
    assert (str(where["table"]), where["column"], where["bytes"], where["at"]) == (f"{SCHEMA}.t", "v", raw, 2)
    assert {"file", "pos", "event"} <= where.keys()

    source = as_source(mysql_server, do=(SCHEMA,))
    with pytest.raises(ValueNotRepresentable) as caught:
        take(source)
    where = caught.value.where
    assert (str(where["table"]), where["column"], where["bytes"], where["at"]) == (f"{SCHEMA}.t", "v", raw, 2)

    kept = Filter(Filters(do=(SCHEMA,)), keep_invalid_text=(f"{SCHEMA}.t.v",))
    value = b"ab" + bytes.fromhex(raw)
    (streamed,) = row_changes(read_from(mysql_server, AfterGtids(start), finished, filters=kept), "t")
    ((_, loaded),) = read_rows(source, kept, [TableName(SCHEMA, "t")])
    assert streamed == ("INSERT", None, [value])
    assert images(loaded) == [(None, [value])]
