"""Settings of a session by name, for which the binary log has numbers: the modes of `sql_mode`, and collations.

The modes of MySQL are those of `sql/sql_const.h` and `sql_mode_names` (sql/sys_vars.cc), those of MariaDB of
`sql/sql_class.h` and its `sql_mode_names`. Up to bit 31 both agree but for bit 4.
"""

from __future__ import annotations

from typing import Final

from connector.errors import Unsupported
from connector.mysql.values.collations import charset_of, collation_name

COLLATION_OPTIONS: Final = frozenset(
    {"collation_connection", "collation_server", "collation_database", "default_collation_for_utf8mb4"}
)

_SHARED: Final = (
    "REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "", "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION", "NO_DIR_IN_CREATE", "POSTGRESQL", "ORACLE", "MSSQL", "DB2", "MAXDB", "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS", "NO_FIELD_OPTIONS", "MYSQL323", "MYSQL40", "ANSI", "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES", "ERROR_FOR_DIVISION_BY_ZERO", "TRADITIONAL", "NO_AUTO_CREATE_USER", "HIGH_NOT_PRECEDENCE",
    "NO_ENGINE_SUBSTITUTION", "PAD_CHAR_TO_FULL_LENGTH",
)  # fmt: skip
_MYSQL: Final = {32: "TIME_TRUNCATE_FRACTIONAL", 33: "INTERPRET_UTF8_AS_UTF8MB4"}
_MARIADB: Final = {
    4: "IGNORE_BAD_TABLE_OPTIONS",
    32: "EMPTY_STRING_IS_NULL",
    33: "SIMULTANEOUS_ASSIGNMENT",
    34: "TIME_ROUND_FRACTIONAL",
}


def named_option(name: str, value: str, *, mariadb: bool = False) -> str:
    """The value of an option of a statement with names for its numbers. An unknown number stays one."""
    if name == "sql_mode":
        return sql_mode_names(int(value), mariadb=mariadb)
    try:
        if name in COLLATION_OPTIONS:
            return collation_name(int(value))
        if name == "character_set_collations" and value:
            pairs = (pair.split("=") for pair in value.split(","))
            return ",".join(f"{charset_of(int(one))}={collation_name(int(other))}" for one, other in pairs)
    except Unsupported:
        return value
    return value


def sql_mode_names(modes: int, *, mariadb: bool = False) -> str:
    """The names of modes, comma-separated in the order of their bits.

    A bit without a name (of a newer server) is a number, which a server accepts only alone: it says so when it is set.
    """
    own = _MARIADB if mariadb else _MYSQL
    found, bit = [], 0
    while modes >> bit:
        if modes >> bit & 1:
            shared = _SHARED[bit] if bit < len(_SHARED) else ""
            found.append(shared or own.get(bit, str(1 << bit)))
        bit += 1
    return ",".join(found)
