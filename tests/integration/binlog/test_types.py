"""Every type is decoded as the server prints it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from connector.log.transaction.batch import Rows
from connector.log.transaction.layout import TableLayout
from connector.log.transaction.position import AfterGtids
from tests.support.binlog import changes, images, read_from
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

SCHEMA = "capture_types"
TEXT, EXACT, BYTES, DOUBLE = "text", "exact", "bytes", "double"

# Definition, how it is compared, the values as SQL.
INTEGERS = [
    ("tinyint", ["-128", "127", "0"]),
    ("tinyint unsigned", ["255", "128"]),
    ("smallint", ["-32768", "32767"]),
    ("smallint unsigned", ["65535"]),
    ("mediumint", ["-8388608", "8388607", "-1"]),
    ("mediumint unsigned", ["16777215"]),
    ("int", ["-2147483648", "2147483647"]),
    ("int unsigned", ["4294967295"]),
    ("bigint", ["-9223372036854775808", "9223372036854775807"]),
    ("bigint unsigned", ["18446744073709551615", "9223372036854775807", "9223372036854775808", "0"]),
    ("year", ["0", "1901", "2155"]),
]
DECIMALS = [
    ("decimal(65,30)", ["'-" + "9" * 35 + "." + "9" * 30 + "'", "'0.000000000000000000000000000001'", "-0.5", "0"]),
    ("decimal(65,0)", ["'" + "9" * 65 + "'", "-1"]),
    ("decimal(30,30)", ["'0." + "1" * 30 + "'", "'-0." + "1" * 30 + "'", "0"]),
    ("decimal(10,2) unsigned", ["99999999.99", "0.01"]),
    ("decimal(18,9)", ["-123456789.987654321", "1000000.000000001"]),
    ("decimal(1,0)", ["-9", "9"]),
    ("decimal(19,10)", ["123456789.0123456789", "-0.0000000001"]),
]
TIMES = [
    ("date", ["'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-00-00'", "'2024-02-29'"]),
    *(
        (f"time({n})", ["'-838:59:59.000000'", "'838:59:59'", "'-00:00:00.999999'", "'00:00:00'", "'-01:02:03.4567'"])
        for n in range(7)
    ),
    *(
        (f"datetime({n})", ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:58.123456'", "'0000-00-00 00:00:00'"])
        for n in range(7)
    ),
    *(
        (f"timestamp({n}) null", ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:06.99'", "'2000-02-29 12:00:00.5'", "0"])
        for n in range(7)
    ),
]
LONG = "repeat('ab''c\u00e9\u20ac', 200)"
TEXTS = [
    ("char(10)", ["'h\u00e9llo'", "''", "'\U0001f600'"]),
    ("char(255)", ["'h\u00e9llo'", "repeat('\u20ac', 255)"]),
    ("varchar(20)", ["'\u20ac uro'", "''", "' pad '"]),
    ("varchar(2000)", [LONG, "''"]),
    ("varchar(300) character set utf8mb3", ["repeat('\u20ac', 300)"]),
    ("tinytext", ["'x\u00e9'"]),
    ("text", [LONG]),
    ("mediumtext", ["repeat('m\u00e9', 40000)"]),
    ("longtext", ["repeat('l', 100000)"]),
    *(
        (f"varchar(300) character set {name}", [sample, f"convert(x'{every}' using {name})"])
        for name, sample, every in [
            ("latin1", "'\u20ac \u00e9'", bytes(range(1, 256)).hex()),
            ("ascii", "'plain'", bytes(range(1, 128)).hex()),
            ("latin2", "'\u0159'", bytes(range(160, 256)).hex()),
            ("cp1251", "'\u042f'", bytes(range(192, 256)).hex()),
            ("koi8r", "'\u042f'", bytes(range(128, 256)).hex()),
            ("greek", "'\u03a9'", bytes(range(193, 210)).hex()),
            ("hebrew", "'\u05d0'", bytes(range(224, 250)).hex()),
            ("swe7", "'abc'", bytes(range(64, 127)).hex()),
            ("macroman", "'\u00e9'", bytes(range(128, 256)).hex()),
            ("ucs2", "'\u20ac'", "00e920ac"),
            ("utf16", "'\U0001f600'", "d83dde00"),
            ("utf16le", "'\U0001f600'", "3dd800de"),
            ("utf32", "'\U0001f600'", "0001f600"),
        ]
    ),
    ("text character set latin1", ["'\u20ac'", "repeat('\u00fc', 5000)"]),
    ("enum('a','b\u00e9','')", ["'b\u00e9'", "''", "1"]),
    ("enum('x','\u00fc') character set latin1", ["'\u00fc'"]),
    ("set('a','b','c','d','e','f','g','h','\u00e9')", ["'a,\u00e9'", "''", "'c'"]),
    ("set('','z')", ["'z'"]),
    ("set(" + ",".join(f"'m{n}'" for n in range(64)) + ")", [str(2**64 - 1), str(2**63)]),
]
BINARIES = [
    ("binary(5)", ["x'0100'", "x''", "x'00ff00ff00'"]),
    ("binary(255)", ["x'01'"]),
    ("varbinary(10)", ["x'0000'", "x''"]),
    ("varbinary(1000)", ["repeat(x'ff00', 400)"]),
    ("tinyblob", ["x'ff'"]),
    ("blob", ["repeat(x'00ff', 300)"]),
    ("mediumblob", ["repeat(x'80', 70000)"]),
    ("longblob", ["x''"]),
    ("bit(1)", ["b'1'", "b'0'"]),
    ("bit(17)", ["b'10000000000000001'"]),
    ("bit(64)", ["0xFFFFFFFFFFFFFFFE"]),
    ("geometry", ["st_geomfromtext('POINT(1 2)', 4326)", "st_geomfromtext('LINESTRING(0 0, 1 1)')"]),
    ("point", ["point(1, -1)"]),
]
DOUBLES = [
    ("float", ["1.1", "-3.4028234e38", "1e-40", "0"]),
    ("double", ["1.7976931348623157e308", "-2.2250738585072014e-308", "0.1", "-0e0"]),
]


def cases() -> Iterator[tuple[str, str, list[str]]]:
    for how, group in [
        (EXACT, INTEGERS),
        (TEXT, DECIMALS),
        (TEXT, TIMES),
        (TEXT, TEXTS),
        (BYTES, BINARIES),
        (DOUBLE, DOUBLES),
    ]:
        for definition, values in group:
            yield how, definition, values


def allowing(server: SqlServer) -> Any:
    """A session in UTC in which a date may be none of the calendar."""
    return connect(server, init_command="SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'")


@pytest.fixture(scope="module")
def log(mysql_server: SqlServer) -> list[tuple[str, str, str, TableLayout, Any, Any]]:
    """One table per type, one row per value: (definition, how, column type, layout, arrived, as the server says)."""
    connection = allowing(mysql_server)
    cursor = connection.cursor()
    cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
    cursor.execute(f"CREATE DATABASE {SCHEMA}")
    cursor.execute(f"USE {SCHEMA}")
    cursor.execute("SELECT @@GLOBAL.gtid_executed")
    start = cursor.fetchone()[0]
    expected = []
    for number, (how, definition, values) in enumerate(cases()):
        cursor.execute(f"CREATE TABLE t{number} (id int auto_increment primary key, v {definition})")
        for value in values:
            cursor.execute(f"INSERT INTO t{number} (v) VALUES ({value})")
        shown = {TEXT: "v", EXACT: "CAST(v AS CHAR)", BYTES: "HEX(v)", DOUBLE: "CAST(v AS DOUBLE)"}[how]
        if definition.startswith("bit"):
            size = (int(definition[4:-1]) + 7) // 8
            shown = f"LPAD(HEX(v), {2 * size}, '0')"
        elif "geometry" in definition or definition == "point":
            shown = "HEX(v)"
        elif "char" in definition or "text" in definition:
            shown = "HEX(CONVERT(v USING utf8mb4))"
        else:
            shown = f"CONVERT({shown} USING utf8mb4)" if how == TEXT else shown
        cursor.execute(f"SELECT {shown} FROM t{number} ORDER BY id")
        rows = [row[0] for row in cursor.fetchall()]
        cursor.execute(
            "SELECT column_type FROM information_schema.columns "
            f"WHERE table_schema = '{SCHEMA}' AND table_name = 't{number}' AND column_name = 'v'"
        )
        column_type = cursor.fetchone()[0]
        expected.append((number, definition, how, column_type, rows))
    cursor.execute("CREATE TABLE finished (id int)")
    connection.close()
    found = read_from(mysql_server, AfterGtids(start), _finished)
    arrived: dict[str, list[tuple[TableLayout, Any]]] = {}
    for change in changes(found):
        if isinstance(change, Rows):
            for _, after in images(change):
                assert after is not None
                arrived.setdefault(change.layout.name.table, []).append((change.layout, after[1]))
    result = []
    for number, definition, how, column_type, rows in expected:
        values = arrived[f"t{number}"]
        assert len(values) == len(rows)
        for (layout, value), row in zip(values, rows, strict=True):
            result.append((definition, how, column_type, layout, value, row))
    return result


def _finished(found: list[Any]) -> bool:
    return any("finished" in getattr(change, "sql", "") for change in changes(found[-3:]))


def test_every_value_arrives_as_the_server_prints_it(log: list[Any]) -> None:
    wrong = []
    for definition, how, _, _, value, said in log:
        if how == BYTES:
            same = value == bytes.fromhex(said)
        elif how == DOUBLE:
            same = struct.pack("<d", value) == struct.pack("<d", said)
        elif how == EXACT:
            same = str(value).zfill(4 if definition == "year" else 1) == said and (
                isinstance(value, int) or int(value) >= 2**63
            )
        elif "char" in definition or "text" in definition:
            same = value == bytes.fromhex(said).decode()
        else:
            same = value == said
        if not same:
            wrong.append((definition, value, said))
    assert not wrong
    assert len(log) > 150


def test_every_column_has_the_type_of_the_information_schema(log: list[Any]) -> None:
    for definition, _, said, layout, _, _ in log:
        column = layout.columns[1]
        words = said.split()
        expected = words[0] if not said.startswith(("enum", "set")) else said.split("(")[0]
        assert column.type == {"point": "geometry"}.get(expected, expected), definition
        assert column.unsigned == ("unsigned" in words)
        assert column.nullable
        assert layout.key == (0,)
        if column.type in {"enum", "set"}:
            assert f"{column.type}({','.join(repr(label) for label in column.labels)})" == said
        if column.charset and column.type not in {"enum", "set"}:
            named = definition.partition("character set ")[2]
            binary = "binary" in definition or "blob" in definition
            assert column.charset == ("binary" if binary else named or "utf8mb4")
