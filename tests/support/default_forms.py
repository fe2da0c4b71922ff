"""A grid of column types and forms of DEFAULT, and sessions in which to execute them.

Each form is said to a server in ALTER TABLE … ADD COLUMN; what a row then holds is read from the server's own log. A
form that the server refuses is no case.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

_NUMBERS = """
0 1 -1 +1 5 007 -0 0.0 -0.0 +0 .5 -.5 0.5 1.5 -1.5 2.5 3.5 1.005 2.675 -2.675 0.1 1.10 100. 1e0 1e3
1E+3 1e-3 -1e-7 1.5e1 1e15 1e14 123456789012345678 1.23e20 1e22 1e400 1e-400 0e0 12345.678 99999.995
99999.994 127 128 -128 -129 255 256 32767 65535 65536 16777215 2147483647 2147483648 4294967295
4294967296 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
18446744073709551615 18446744073709551616 99999999999999999999999 69 70 99 100 1900 1901 2024 2155
2156 16777217 3.14159265358979 0.30000000000000004 1e38 3.5e38 1e308 20240102 20240102030405 240102
20240102030405.678 101112 101112.5 -101112 8385959 8390000 1.0 1.50 -5 00.50 1e1 10.49999 10.5 -10.5
000 2e0 -0e0 2.5e0 3.5e0 -2.5e0 1.005e0 12345678901234567890123.5
"""
NUMBERS = _NUMBERS.split()
_BITS = """
0x41 0x4 x'' X'c3a9' x'E9' 0xE6BC 0xff 0xFFFFFFFFFFFFFFFF 0x1FFFFFFFFFFFFFFFF x'00' x'0041' x'30'
x'4100' b'101' b'' 0b1 b'11111111' b'100000000' b'1000000000000000000000000000000001' 0x3031 x'2035'
0x00000001 -0x41
"""
BITS = _BITS.split()
_WORDS = """
NULL TRUE FALSE true CURRENT_TIMESTAMP CURRENT_TIMESTAMP(2) CURRENT_TIMESTAMP(6) NOW() NOW(3)
LOCALTIME LOCALTIMESTAMP(2)
"""
WORDS = _WORDS.split()
STRINGS = [
    *(
        "''",
        "' '",
        "'5'",
        "' 5'",
        "'5 '",
        "' 5 '",
        "'-5'",
        "'+5'",
        "'- 5'",
        "'007'",
        "'1.5'",
        "'2.5'",
        "'-0'",
        "'-0.0'",
    ),
    *("'.5'", "'5.'", "'1e2'", "'1E2'", "'1e'", "'1.005'", "'0x10'", "'abc'", "'5abc'", "'a'", "'a '", "'a   '", "'A'"),
    *("'abcdefgh'", "'abcdefgh  '", "'ab    '", "'TRUE'", "'\\0'", "'a\\0'", "'a\\nb'", "'a\\\\b'", "'it''s'", "'\\''"),
    *(
        "'%\\%\\_'",
        "'a' 'b'",
        "'a' ' '",
        '"q"',
        "N'a'",
        "n'\u00e9'",
        "'\u00e9'",
        "'\u6f22'",
        "'\U0001f600'",
        "'\u042f'",
    ),
    *(
        "'\u00e9\u00e9'",
        "'e\u0301'",
        "'\uff3c'",
        "'\u20ac'",
        "'\u00a5'",
        "'\u0081'",
        "'\ufffd'",
        "'\u3000'",
        "'a\u00a0'",
    ),
    *("_latin1'\u00e9'", "_latin1'a'", "_utf8mb4'\u00e9'", "_utf8mb3'\u00e9'", "_binary'\u00e9'", "_binary'a'"),
    *("_latin1 x'E9'", "_utf8mb4 x'C3A9'", "_utf8mb4 0x41", "_ucs2 x'00E9'", "_ucs2 0xE9", "_utf16 x'D83DDE00'"),
    *("_latin1 b'1000001'", "_cp1251 x'DF'", "_utf8mb4 x'E9'", "_gbk x'B0A1'", "_sjis x'815F'", "_utf32 x'41'"),
    *(
        "_latin1'\u00e9' '\u00e9'",
        "'9223372036854775808'",
        "'18446744073709551615'",
        "'1e30'",
        "'99999.995'",
        "'12345.67'",
    ),
    *("'0'", "'00'", "'000'", "'0000'", "'1'", "'69'", "'70'", "'99'", "'1901'", "'2024'", "'2155'", "'24'", "' 24'"),
]
TIMES = [
    *("'2024-01-02'", "'2024-1-2'", "'24-1-2'", "'70-01-02'", "'69-01-02'", "'20240102'", "'240102'", "'2024/01/02'"),
    *("'2024.01.02'", "'2024-01-02 '", "' 2024-01-02'", "'2024-02-30'", "'2024-02-31'", "'2023-02-29'", "'2024-00-10'"),
    *("'2024-01-00'", "'0000-00-00'", "'0000-00-00 00:00:00'", "'0000-01-01'", "'2024-13-01'", "'9999-12-31'"),
    *("'2024-01-02 03:04:05'", "'2024-1-2 3:4:5'", "'2024-01-02 03:04'", "'2024-01-02 03'", "'2024-01-02T03:04:05'"),
    *(
        "'2024-01-02 03:04:05.5'",
        "'2024-01-02 03:04:05.50'",
        "'2024-01-02 03:04:05.678'",
        "'2024-01-02 03:04:05.123456'",
    ),
    *(
        "'2024-01-02 03:04:05.995'",
        "'2024-12-31 23:59:59.9999999'",
        "'2024-01-02 03:04:05.1234565'",
        "'20240102030405'",
    ),
    *(
        "'2024-01-02 03:04:05.'",
        "'2024-01-02 03:04:05 '",
        "'2024-01-02  03:04:05'",
        "'240102030405'",
        "'2024-01-02 24:00:00'",
    ),
    *("'2024-01-02 03:04:60'", "'2024-01-02 00:00:00'", "'2024-01-02 03:04:05+02:00'", "'2024-01-02 03:04:05-14:00'"),
    *("'1970-01-01 00:00:00'", "'1970-01-01 05:30:01'", "'2038-01-19 03:14:07'", "'2038-01-19 08:44:07'"),
    *("'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'9999-12-31 23:59:59.9'", "'20240102030405.678'"),
    *("'2024-03-31 02:30:00'", "'2024-10-27 02:30:00'", "'2024-07-01 12:00:00'", "'2024-01-02 03:04:05.000'"),
    *(
        "'10:11'",
        "'10:11:12'",
        "'1:2:3'",
        "'10:11:12.5'",
        "'10:11:12.50'",
        "'10:11:12.995'",
        "'-10:11:12'",
        "'-00:00:00'",
    ),
    *("'-00:00:00.5'", "'-00:00:00.4'", "'1 10:11:12'", "'1 10:11'", "'1 10'", "'34 22:59:59'", "'-1 10:11:12'"),
    *(
        "'838:59:59'",
        "'-838:59:59'",
        "'839:00:00'",
        "'838:59:59.5'",
        "'101112'",
        "'1112'",
        "'12'",
        "'-12'",
        "'101112.5'",
    ),
    *(
        "'00:00:00'",
        "'0:0:0'",
        "'10:60:00'",
        "'10:11:60'",
        "'100:00:00'",
        "' 10:11:12'",
        "'10:11:12 '",
        "'10:11:12abc'",
    ),
    *("'0:00'", "'24:00:00'", "'+10:11:12'", "'-0:0:1'", "'10:11:12.'", "'59:59.5'", "'23:59:59.9999999'"),
    *("DATE'2024-01-02'", "TIME'10:11:12'", "TIMESTAMP'2024-01-02 03:04:05'", "TIMESTAMP'2024-01-02 03:04:05.678'"),
    *("'2024-12-31 23:59:59.5'", "TIMESTAMP'2024-12-31 23:59:59.5'", "20241231235959.5", "'2024-12-31 23:59:59.4'"),
    *("DATE'2024-1-2'", "TIME'-10:11:12.5'", "TIMESTAMP'2024-01-02 03:04:05+02:00'", "DATE '2024-01-02'"),
]
EXPRESSIONS = [
    *("(5)", "('a')", "('')", "(1.5)", "(-1)", "(NULL)", "('{}')", "('[]')", "(JSON_OBJECT())", "(JSON_ARRAY())"),
    *("('{\"a\": 1}')", "('[1,2]')", "('null')", "(TRUE)", "(0x41)", "(1 + 1)", "(CURRENT_DATE)", "(NOW())", "(x'00')"),
    *("(POINT(1, 2))", "(UUID())", "('\u00e9')", "('2024-01-02')", "CURRENT_DATE", "('1.0')", "('\"x\"')"),
]
ENUMS = [
    *(
        "'x'",
        "'X'",
        "'x '",
        "' x'",
        "'y'",
        "'\u00e4'",
        "'\u00c4'",
        "'z'",
        "'1'",
        "'2'",
        "1",
        "2",
        "0",
        "'x,y'",
        "'y,x'",
        "'x,x'",
    ),
    *("'X,Y'", "'x, y'", "',x'", "'x,'", "3", "0x78", "'0'", "'10'", "'Y'", "'a b'", "'A B '"),
]

WHOLE = [
    f"{name}{sign}" for name in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT") for sign in ("", " UNSIGNED")
]
TYPES: dict[str, tuple[list[str], ...]] = {
    **dict.fromkeys([*WHOLE, "INT(5) ZEROFILL", "BOOL"], (NUMBERS, BITS, STRINGS, WORDS)),
    **dict.fromkeys(
        [
            *("DECIMAL(5,2)", "DECIMAL(10,0) UNSIGNED", "DECIMAL(30,10)", "DECIMAL", "DECIMAL(65,30)"),
            *("FLOAT", "FLOAT(7,2)", "DOUBLE", "DOUBLE(7,2)", "FLOAT UNSIGNED", "DOUBLE(20,4)", "FLOAT(30)", "REAL"),
        ],
        (NUMBERS, BITS, STRINGS, WORDS),
    ),
    **dict.fromkeys(["BIT(1)", "BIT(10)", "BIT(64)"], (NUMBERS, BITS, STRINGS, WORDS)),
    "YEAR": (NUMBERS, BITS, STRINGS, WORDS, TIMES),
    **dict.fromkeys(["DATE", "TIME", "TIME(2)", "DATETIME", "DATETIME(2)"], (NUMBERS, BITS, STRINGS, WORDS, TIMES)),
    **dict.fromkeys(["TIME(6)", "DATETIME(6)"], (NUMBERS, WORDS, TIMES)),
    **dict.fromkeys(["TIMESTAMP NULL", "TIMESTAMP(2) NULL", "TIMESTAMP"], (NUMBERS, WORDS, TIMES)),
    **dict.fromkeys(
        [
            *(
                "CHAR(3)",
                "VARCHAR(3)",
                "VARCHAR(30)",
                "CHAR(20) CHARACTER SET latin1",
                "VARCHAR(30) CHARACTER SET latin1",
            ),
            *("VARCHAR(9) CHARACTER SET ascii", "VARCHAR(9) CHARACTER SET ucs2", "CHAR(3) CHARACTER SET utf16"),
            *("VARCHAR(9) CHARACTER SET cp1251", "VARCHAR(9) CHARACTER SET sjis", "VARCHAR(9) CHARACTER SET gbk"),
            *("VARCHAR(9) CHARACTER SET utf32", "VARCHAR(9) CHARACTER SET utf8mb3", "NCHAR(5)"),
            *("BINARY(2)", "BINARY(6)", "VARBINARY(3)", "VARBINARY(30)", "VARCHAR(9) CHARACTER SET binary"),
        ],
        (NUMBERS, BITS, STRINGS, WORDS),
    ),
    **dict.fromkeys(
        ["TEXT", "BLOB", "JSON", "TINYTEXT", "GEOMETRY"], (["0", "'a'", "''", "x'41'"], WORDS, EXPRESSIONS)
    ),
    **dict.fromkeys(
        [
            *("ENUM('x','y','\u00e4','a b')", "SET('x','y','\u00e4')", "ENUM('1','0','2')", "SET('1','0','10','x')"),
            *(
                "ENUM('x','y') COLLATE utf8mb4_bin",
                "ENUM('','x')",
                "SET('','x')",
                "ENUM('x','X ') CHARACTER SET latin1",
            ),
        ],
        (ENUMS, STRINGS, WORDS),
    ),
    **dict.fromkeys(
        ["INT NOT NULL", "VARCHAR(5) NOT NULL", "DATETIME NOT NULL", "DOUBLE NOT NULL"], (WORDS, EXPRESSIONS)
    ),
}
MARIADB_TYPES: dict[str, tuple[list[str], ...]] = {
    "UUID": (["'123e4567-e89b-12d3-a456-426655440000'", "'123E4567E89B12D3A456426655440000'", "''", "'x'", "0"], BITS),
    "INET6": (["'::1'", "'2001:DB8::1'", "'1.2.3.4'", "'::ffff:1.2.3.4'", "''", "'x'", "0"], BITS),
    "INET4": (["'1.2.3.4'", "'1.2.3'", "'01.2.3.4'", "''", "0"], BITS),
    "TEXT CHARACTER SET latin1": (STRINGS, NUMBERS, BITS),
    "BLOB": (STRINGS, NUMBERS, BITS),
    "JSON": (EXPRESSIONS, STRINGS),
}
# Without a DEFAULT: what MySQL gives by itself.
IMPLICIT = [
    *WHOLE,
    *("FLOAT", "DOUBLE(7,2)", "DECIMAL(5,2)", "DECIMAL(10,0)", "DECIMAL(30,30)", "BIT(1)", "BIT(17)", "YEAR", "DATE"),
    *("TIME", "TIME(3)", "DATETIME", "DATETIME(6)", "TIMESTAMP", "TIMESTAMP(3)", "CHAR(3)", "VARCHAR(3)", "BINARY(3)"),
    *(
        "VARBINARY(3)",
        "TINYTEXT",
        "TEXT",
        "MEDIUMTEXT",
        "LONGTEXT",
        "TINYBLOB",
        "BLOB",
        "MEDIUMBLOB",
        "LONGBLOB",
        "JSON",
    ),
    *("ENUM('x','y')", "ENUM('','y')", "SET('x','y')", "GEOMETRY", "POINT", "VECTOR(3)", "INT AUTO_INCREMENT UNIQUE"),
    *("SERIAL", "VARCHAR(3) CHARACTER SET utf16", "CHAR(3) CHARACTER SET ucs2", "INT GENERATED ALWAYS AS (id + 1)"),
    *("INT AS (id * 2) STORED", "TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", "DATETIME(3) ON UPDATE CURRENT_TIMESTAMP(3)"),
    *("UUID", "INET6", "INET4"),
]


@dataclass(frozen=True, slots=True)
class Session:
    """The settings of a client's session.

    Args:
        name: name of the session.
        client: the character set, as pymysql calls it.
        settings: said before the first statement.
    """

    name: str
    client: str = "utf8mb4"
    settings: tuple[str, ...] = ()


SESSIONS = [
    Session("strict", settings=("SET time_zone = '+05:30'",)),
    Session("loose", settings=("SET sql_mode = '', time_zone = '+05:30', timestamp = 1700000000.987654",)),
    Session(
        "quotes",
        settings=(
            "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,ALLOW_INVALID_DATES,REAL_AS_FLOAT', time_zone = '+01:00'",
        ),
    ),
    Session("latin1", "latin1", ("SET sql_mode = 'STRICT_ALL_TABLES'",)),
    Session("latin1 connection", settings=("SET sql_mode = '', collation_connection = latin1_swedish_ci",)),
    Session("utf8mb4 from latin1", "latin1", ("SET collation_connection = utf8mb4_bin, time_zone = '-03:00'",)),
    Session("cp1251", "cp1251", ("SET sql_mode = ''",)),
    Session("ucs2 connection", settings=("SET collation_connection = ucs2_general_ci",)),
    Session("sjis", "sjis", ("SET sql_mode = 'NO_ZERO_DATE,NO_ZERO_IN_DATE'",)),
    Session("gbk", "gbk"),
    Session("binary connection", settings=("SET collation_connection = binary",)),
]
MYSQL_SESSIONS = [
    Session("truncating", settings=("SET sql_mode = 'TIME_TRUNCATE_FRACTIONAL', timestamp = 1700000000.987654",)),
    Session("implicit", settings=("SET explicit_defaults_for_timestamp = OFF, sql_mode = '', time_zone = '+00:00'",)),
]
MARIADB_SESSIONS = [
    Session("rounding", settings=("SET sql_mode = 'TIME_ROUND_FRACTIONAL', timestamp = 1700000000.987654",)),
    Session("implicit", settings=("SET explicit_defaults_for_timestamp = OFF, sql_mode = '', time_zone = '+00:00'",)),
]


# What people write: none of these may stop, and none may be refused.
ORDINARY = [
    *(
        "INT DEFAULT ' 5'",
        "INT NOT NULL DEFAULT '0'",
        "INT DEFAULT -1",
        "BIGINT DEFAULT 1e3",
        "TINYINT(1) DEFAULT TRUE",
    ),
    *("DECIMAL(10,2) DEFAULT '0.00'", "DECIMAL(10,2) DEFAULT 1.005", "FLOAT(7,2) DEFAULT 1.005", "DOUBLE DEFAULT -0.0"),
    *("YEAR DEFAULT '0'", "YEAR DEFAULT 24", "YEAR DEFAULT '2024'", "VARCHAR(9) DEFAULT 007", "VARCHAR(9) DEFAULT .5"),
    *("VARCHAR(9) DEFAULT 1e3", "VARCHAR(9) DEFAULT -0", "CHAR(3) DEFAULT 'a '"),
    *("VARCHAR(9) CHARACTER SET latin1 DEFAULT '\u00e9'", "VARCHAR(9) CHARACTER SET ucs2 DEFAULT '\u00e9'"),
    *("VARCHAR(9) CHARACTER SET gbk DEFAULT '\u6f22'", "VARCHAR(9) CHARACTER SET cp1251 DEFAULT '\u042f'"),
    *("BINARY(2) DEFAULT '\u00e9'", "VARBINARY(9) DEFAULT x'00ff'", "BIT(3) DEFAULT b'101'", "BIT(1) DEFAULT 1"),
    *(
        "DATE DEFAULT '2024-1-2'",
        "DATE DEFAULT '2024-01-02 00:00:00'",
        "TIME DEFAULT '10:11'",
        "TIME DEFAULT '-00:00:00'",
    ),
    *(
        "DATETIME(2) DEFAULT '2024-01-02 03:04:05.50'",
        "DATETIME DEFAULT '2024-1-2 3:4:5'",
        "DATETIME DEFAULT '2024-01-02'",
    ),
    *("DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)", "TIMESTAMP NULL DEFAULT '2024-01-02 03:04:05'", "TIMESTAMP NULL"),
    *("DATETIME NOT NULL DEFAULT '1970-01-01 00:00:00'", "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP"),
    *("ENUM('x','y') DEFAULT 'Y'", "ENUM('x','y') NOT NULL", "SET('x','y') DEFAULT 'Y,x'", "TEXT NOT NULL", "JSON"),
    *("VARCHAR(9) DEFAULT _latin1 x'E9'", "VARCHAR(9) DEFAULT N'a'", "VARCHAR(9) DEFAULT 'a' 'b'", "BLOB NOT NULL"),
    *("TEXT DEFAULT ('a')", "TEXT NOT NULL DEFAULT ('')", "DATE DEFAULT (CURRENT_DATE)", "INT DEFAULT (5)"),
]


def definitions(*, mariadb: bool = False) -> Iterator[str]:
    """Every column definition of the grid, without a name."""
    types = {**TYPES, **MARIADB_TYPES} if mariadb else TYPES
    for type_, groups in types.items():
        for form in dict.fromkeys(form for group in groups for form in group):
            yield f"{type_} DEFAULT {form}"
    for type_ in IMPLICIT:
        yield type_
        yield f"{type_} NOT NULL"


def sample(found: Iterator[str], share: int, seed: str) -> Iterator[str]:
    """A sample of the grid, always the same."""
    for definition in found:
        if zlib.crc32(f"{seed} {definition}".encode()) % share == 0:
            yield definition
