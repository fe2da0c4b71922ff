"""The DEFAULT of a new column in existing rows: answers of servers, and arbitrary definitions.

The whole grid is asked of real servers in tests/integration; here are forms of each kind.
"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connector.errors import ConnectorError
from connector.log.transaction.batch import Statement
from connector.targets.ddl.characters import decoded, encoded, representable
from connector.targets.ddl.plan import plan
from connector.targets.operations import AlterTable, KnownValue, Value
from connector.targets.table import Table
from connector.targets.target_schema import TargetSchema

BEFORE = plan(Statement("s", "CREATE TABLE t (id INT) CHARACTER SET utf8mb4"), TargetSchema(), 0).target_schema
UTF8 = {"character_set_client": "utf8mb4", "collation_connection": "255", "time_zone": "+05:30"}
LATIN1 = {"character_set_client": "latin1", "collation_connection": "8"}
MIXED = {"character_set_client": "utf8mb4", "collation_connection": "8"}
UCS2 = {"character_set_client": "utf8mb4", "collation_connection": "35"}
RAW = {"character_set_client": "utf8mb4", "collation_connection": "63"}
TRUNCATING = {**UTF8, "sql_mode": str(1 << 32)}
INVALID = {**UTF8, "sql_mode": str(1 << 25)}
NO_ZERO = {**UTF8, "sql_mode": str(1 << 23)}
MARIADB = {**UTF8, "dialect": "mariadb", "explicit_defaults_for_timestamp": "1"}
ROUNDING = {**MARIADB, "sql_mode": str(1 << 34)}
NULLING = {**MARIADB, "sql_mode": str(1 << 32)}
BERLIN = {**UTF8, "time_zone": "Europe/Berlin"}

KNOWN: list[tuple[dict[str, str], str, Value]] = [
    (UTF8, "INT DEFAULT ' 5'", 5),
    (UTF8, "INT DEFAULT '1e2'", 100),
    (UTF8, "INT DEFAULT -2.5", -3),
    (UTF8, "INT DEFAULT 2.5e0", 2),
    (UTF8, "BIGINT UNSIGNED DEFAULT 0xFFFFFFFFFFFFFFFF", "18446744073709551615"),
    (UTF8, "DECIMAL(65,30) DEFAULT -9223372036854775809", "-9223372036854775809." + 30 * "0"),
    (UTF8, "DECIMAL(5,2) DEFAULT 1.005e0", "1.01"),
    (UTF8, "DECIMAL(30,30) NOT NULL", "0." + 30 * "0"),
    (UTF8, "FLOAT(7,2) DEFAULT 12345.678", 12345.6796875),
    (UTF8, "DOUBLE(7,2) DEFAULT -1e-7", 0.0),
    (UTF8, "DOUBLE DEFAULT -0.0", 0.0),
    (UTF8, "DOUBLE DEFAULT '-0.0'", -0.0),
    (UTF8, "DOUBLE DEFAULT -0e0", -0.0),
    (UTF8, "YEAR DEFAULT '0'", 2000),
    (RAW, "YEAR DEFAULT '0'", 2000),
    (UTF8, "YEAR DEFAULT 0", 0),
    (UTF8, "YEAR DEFAULT '0000'", 0),
    (UTF8, "YEAR DEFAULT 70", 1970),
    (UTF8, "BIT(10) DEFAULT 'a'", b"\0a"),
    (UTF8, "VARCHAR(9) DEFAULT 007", "7"),
    (UTF8, "VARCHAR(9) DEFAULT 100.", "100"),
    (UTF8, "VARCHAR(9) DEFAULT -.50", "-0.50"),
    (UTF8, "VARCHAR(9) DEFAULT -0", "0"),
    (UTF8, "VARCHAR(30) DEFAULT 1e14", "100000000000000"),
    (UTF8, "VARCHAR(9) DEFAULT TRUE", "1"),
    (UTF8, "VARCHAR(3) DEFAULT 'ab   '", "ab "),
    (UTF8, "CHAR(3) DEFAULT 'ab   '", "ab"),
    (UTF8, "VARCHAR(9) DEFAULT 'a' 'b'", "ab"),
    (UTF8, "VARCHAR(9) DEFAULT _latin1'\u00e9'", "\u00c3\u00a9"),
    (UTF8, "VARCHAR(9) DEFAULT _latin1 x'E9'", "\u00e9"),
    (UTF8, "VARCHAR(9) DEFAULT _sjis x'815F'", "\\"),
    (UTF8, "VARBINARY(9) DEFAULT _sjis x'815F'", b"\x81\x5f"),
    (UTF8, "VARCHAR(9) CHARACTER SET ucs2 DEFAULT x'E9'", "\u00e9"),
    (UTF8, "VARCHAR(9) CHARACTER SET utf16 DEFAULT x'4100'", "\u4100"),
    (UTF8, "VARCHAR(9) CHARACTER SET gbk DEFAULT '\u6f22'", "\u6f22"),
    (UTF8, "BINARY(2) DEFAULT '\u00e9'", b"\xc3\xa9"),
    (LATIN1, "BINARY(2) DEFAULT '\u00e9'", b"\xe9\0"),
    (LATIN1, "VARCHAR(9) DEFAULT '\u00e9'", "\u00e9"),
    (MIXED, "BINARY(2) DEFAULT '\u00e9'", b"\xe9\0"),
    (UCS2, "VARBINARY(9) DEFAULT 'ab'", b"\0a\0b"),
    (UCS2, "VARCHAR(9) DEFAULT 'ab'", "ab"),
    (RAW, "VARCHAR(9) CHARACTER SET latin1 DEFAULT '\u00e9'", "\u00c3\u00a9"),
    (UTF8, "DATE DEFAULT '2024-1-2'", "2024-01-02"),
    (UTF8, "DATE DEFAULT '69-1-2'", "2069-01-02"),
    (UTF8, "DATE DEFAULT 20240102", "2024-01-02"),
    (UTF8, "DATE DEFAULT '2024-12-31 23:59:59.5'", "2025-01-01"),
    (UTF8, "DATE DEFAULT '2024-12-31 23:59:59.4'", "2024-12-31"),
    (UTF8, "DATE DEFAULT '2024-12-31 23:59:58.9'", "2024-12-31"),
    (TRUNCATING, "DATE DEFAULT '2024-12-31 23:59:59.5'", "2024-12-31"),
    (MARIADB, "DATE DEFAULT '2024-12-31 23:59:59.5'", "2024-12-31"),
    (ROUNDING, "DATE DEFAULT '2024-12-31 23:59:59.5'", "2024-12-31"),
    (UTF8, "DATE DEFAULT DATE'2024-01-02'", "2024-01-02"),
    (INVALID, "DATE DEFAULT '2024-02-31'", "2024-02-31"),
    (UTF8, "DATE DEFAULT '2024-00-10'", "2024-00-10"),
    (UTF8, "TIME DEFAULT '-00:00:00'", "00:00:00"),
    (UTF8, "TIME DEFAULT '10:11'", "10:11:00"),
    (UTF8, "TIME DEFAULT '1112'", "00:11:12"),
    (UTF8, "TIME(2) DEFAULT '1 10:11:12.995'", "34:11:13.00"),
    (UTF8, "DATETIME(2) DEFAULT '2024-01-02 03:04:05.50'", "2024-01-02 03:04:05.50"),
    (UTF8, "DATETIME DEFAULT '2024-12-31 23:59:59.5'", "2025-01-01 00:00:00"),
    (TRUNCATING, "DATETIME DEFAULT '2024-12-31 23:59:59.5'", "2024-12-31 23:59:59"),
    (MARIADB, "DATETIME DEFAULT '2024-12-31 23:59:59.5'", "2024-12-31 23:59:59"),
    (UTF8, "TIMESTAMP NULL DEFAULT '2024-1-2 3:4:5'", "2024-01-01 21:34:05"),
    (UTF8, "TIMESTAMP NULL DEFAULT 0", "0000-00-00 00:00:00"),
    (BERLIN, "TIMESTAMP NULL DEFAULT '2024-07-01 12:00:00'", "2024-07-01 10:00:00"),
    (UTF8, "DATETIME(3) DEFAULT (NOW())", "2023-11-15 03:43:20.000"),
    (UTF8, "DATE DEFAULT (CURRENT_DATE)", "2023-11-15"),
    (UTF8, "ENUM('x','y') DEFAULT 'Y '", "y"),
    (UTF8, "ENUM('1','2') DEFAULT 2", "2"),
    (MARIADB, "ENUM('1','0','2') DEFAULT 2", "0"),
    (UTF8, "SET('x','y') DEFAULT 'Y,x,x'", "x,y"),
    (UTF8, "TEXT NOT NULL DEFAULT ('')", ""),
    (TRUNCATING, "VARCHAR(20) DEFAULT ''", ""),
    (NULLING, "VARCHAR(20) DEFAULT 'a'", "a"),
    (UTF8, "TEXT DEFAULT ''", None),  # of a server that is not strict: a warning
    (MARIADB, "TEXT DEFAULT ''", ""),
    (MARIADB, "TEXT DEFAULT 'a'", "a"),
    (UTF8, "JSON DEFAULT (JSON_ARRAY())", "[]"),
    (MARIADB, "UUID DEFAULT '123e4567-e89b-12d3-a456-426655440000'", bytes.fromhex("123e4567e89b12d3a456426655440000")),
    (MARIADB, "INET6 DEFAULT '::1'", bytes(15) + b"\1"),
    (UTF8, "VECTOR(3) NOT NULL", b""),
]
UNKNOWN = [
    (UTF8, "INT DEFAULT (1 + 1)"),
    (UTF8, "INT DEFAULT (_x + 1)"),
    (UTF8, "INT DEFAULT ('1' + 1)"),
    (UTF8, "INT NOT NULL DEFAULT (NULL)"),
    (UTF8, "DOUBLE DEFAULT 0xFFFFFFFFFFFFFFFF"),
    (UTF8, "VARCHAR(30) DEFAULT 1e15"),
    (UTF8, "CHAR(3) CHARACTER SET utf16 DEFAULT 1e1"),
    (UTF8, "VARCHAR(9) DEFAULT _latin1'\u00e9' '\u00e9'"),
    (UCS2, "VARCHAR(9) DEFAULT 'a' 'b'"),
    (MIXED, "VARCHAR(9) DEFAULT '\u6f22'"),  # a question mark
    (UTF8, "VARCHAR(9) CHARACTER SET sjis DEFAULT '\uff3c'"),  # comes back as a backslash
    ({}, "BINARY(2) DEFAULT '\u00e9'"),
    (NO_ZERO, "DATETIME DEFAULT '2024-00-10'"),
    (UTF8, "DATE DEFAULT '2024-02-31'"),
    (UTF8, "TIME DEFAULT '2024-01-02'"),
    (BERLIN, "TIMESTAMP NULL DEFAULT '2024-03-31 02:30:00'"),  # never
    (BERLIN, "TIMESTAMP NULL DEFAULT '2024-10-27 02:30:00'"),  # twice
    (UTF8, "ENUM('x','\u00e4') DEFAULT 'a'"),
    (UTF8, "ENUM('a','A') DEFAULT 'A'"),
    (UTF8, "ENUM('1','0','2') DEFAULT 2"),  # '0' to a MySQL 5.6
    ({**MARIADB, **UCS2}, "VARCHAR(5) DEFAULT (JSON_ARRAY())"),
    (UTF8, "SET('','x') DEFAULT ',x'"),
    (NULLING, "VARCHAR(20) DEFAULT ''"),  # NULL
    (UCS2, "YEAR DEFAULT '00'"),  # 0 to a MySQL
    (UCS2, "YEAR DEFAULT '0000'"),  # 2000 to a MySQL 9.7
    (UTF8, "DATE DEFAULT 20241231235959.5"),
    (UTF8, "DATE DEFAULT TIMESTAMP'2024-12-31 23:59:59.5'"),
    (UTF8, "DATE DEFAULT '9999-12-31 23:59:59.5'"),
    (MARIADB, "INT DEFAULT x'30'"),
    (MARIADB, "TEXT DEFAULT _latin1 x'E9'"),
    (MARIADB, "TIMESTAMP(2) NULL DEFAULT NOW()"),
    (UTF8, "DATETIME(2) DEFAULT (NOW(6))"),
]


def added(definition: str, options: dict[str, str]) -> tuple[object, Table]:
    """The value in existing rows, and the table afterwards."""
    statement = Statement("s", f"ALTER TABLE t ADD c {definition}", options)
    (operation,) = plan(statement, BEFORE, 1_700_000_000_123_456).operations
    assert isinstance(operation, AlterTable)
    return operation.origins[-1], operation.after


@pytest.mark.parametrize(("options", "definition", "value"), KNOWN, ids=[f"{line[1]}" for line in KNOWN])
def test_known_literal_is_converted(options: dict[str, str], definition: str, value: Value) -> None:
    origin, _ = added(definition, options)
    assert repr(origin) == repr(KnownValue(value))


@pytest.mark.parametrize(("options", "definition"), UNKNOWN, ids=[line[1] for line in UNKNOWN])
def test_literal_only_the_source_can_convert_is_unknown(options: dict[str, str], definition: str) -> None:
    origin, table = added(definition, options)
    assert not isinstance(origin, KnownValue)
    assert "c" not in table.defaults_of()


def test_new_row_gets_the_default_of_existing_rows() -> None:
    _, table = added("YEAR DEFAULT '0'", UTF8)
    assert table.defaults_of() == {"id": None, "c": 2000}


def test_float_default_with_six_digits_is_known() -> None:
    """Another ALTER reads the default as the server prints it."""
    for literal, known in (("0.1", True), ("16777217", False), ("101112.5", False)):
        origin, table = added(f"FLOAT DEFAULT {literal}", UTF8)
        assert isinstance(origin, KnownValue)
        assert ("c" in table.defaults_of()) is known


def test_characters_are_encoded_in_their_charset() -> None:
    assert encoded("\u00e9", "latin1") == b"\xe9"
    assert encoded("\u00e9", "ucs2") == b"\0\xe9"
    assert encoded("\u6f22", "latin1") is None
    assert encoded("\u6f22", "gbk") is None  # several codes may be one character
    assert decoded(b"\xe9", "utf32") == "\u00e9"
    assert decoded(b"\xe9", "utf8mb4") is None
    assert not representable("\U0001f600", "utf8mb3")


TYPES = """INT;BIGINT UNSIGNED;DECIMAL(65,30);FLOAT(7,2);DOUBLE;YEAR;BIT(9);DATE;TIME(2);DATETIME(6);TIMESTAMP NULL
CHAR(3);VARCHAR(9);VARCHAR(9) CHARACTER SET ucs2;VARCHAR(9) CHARACTER SET gbk;BINARY(3);ENUM('x','');SET('x','y')
TEXT;JSON;UUID;INET4;POINT"""
LITERALS = st.one_of(
    st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{0,9}([eE][+-]?[0-9]{1,9})?", fullmatch=True),
    st.from_regex(r"(_latin1|_utf8mb4|_binary|N|DATE|_ucs2|_nosuch)? ?'[-0-9:. Tx,\u00e9]{0,20}'", fullmatch=True),
    st.from_regex(r"(_utf16 |_gbk )?(x'([0-9a-f]{2}){0,9}'|0x[0-9a-f]{1,19}|b'[01]{0,70}')", fullmatch=True),
    st.from_regex(r"\((NOW\([0-9]{0,9}\)|-[0-9]|_x|CURRENT_DATE|'x'|[(]1[)]|NULL) ?[+]?1?\)", fullmatch=True),
)


@given(
    st.sampled_from(TYPES.replace("\n", ";").split(";")),
    LITERALS,
    st.sampled_from([UTF8, LATIN1, UCS2, RAW, INVALID, MARIADB, BERLIN, {}]),
)
@example("INT", "2E200", UTF8)
@example("DECIMAL(65,30)", "-1e300", UTF8)
def test_any_default_is_known_or_unknowable(type_: str, literal: str, options: dict[str, str]) -> None:
    with contextlib.suppress(ConnectorError):
        added(f"{type_} DEFAULT {literal}", options)
