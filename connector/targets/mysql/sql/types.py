"""MySQL's types for MySQL's: each column has its own type, and text its own character set.

Tables that the applier makes have text in a binary collation, in which only equal bytes are equal: the log's keys are
compared by their bytes. In utf8mb4 it is one without padding: MySQL pads no text of its default collations.
"""

from __future__ import annotations

import re
from typing import Final

from connector.ddl.syntax.type_names import CHARACTERS, FLOATS, INTEGERS
from connector.log.transaction.layout import Column, TableLayout
from connector.targets.mysql.sql.names import text_literal
from connector.targets.mysql.sql.sql_values import LiteralKind
from connector.targets.types import BYTES, family, parse

_INDEXED: Final = 700  # characters of a text that certainly fit an index of InnoDB
_PREFIX: Final = 255
_WIDTH: Final = re.compile(r"^((?:tiny|small|medium|big)?int|year)\(\d+\)")


def mysql_type(column: Column, *, mariadb: bool) -> str:
    """The type of a column in a CREATE TABLE, with its character set and collation."""
    base = parse(column.type).base
    if base in ("enum", "set"):
        kind = f"{base}({','.join(text_literal(label) for label in column.labels)})"
    else:
        kind = f"{column.type}{' unsigned' if column.unsigned else ''}"
    if base in CHARACTERS or base in ("enum", "set"):
        charset = column.charset or "utf8mb4"
        return f"{kind} CHARACTER SET {charset} COLLATE {_collation(charset, mariadb=mariadb)}"
    return kind


def _collation(charset: str, *, mariadb: bool) -> str:
    if charset == "binary":
        return "binary"
    if mariadb:
        return f"{charset}_nopad_bin"
    return "utf8mb4_0900_bin" if charset == "utf8mb4" else f"{charset}_bin"


def literal_kind(column: Column, *, mariadb: bool) -> LiteralKind:
    """The kind of a column's literals. MariaDB's JSON is a text."""
    base = parse(column.type).base
    if base in FLOATS:
        return LiteralKind.REAL
    if base in INTEGERS or base in ("decimal", "year"):
        return LiteralKind.NUMBER
    if base == "bit":
        return LiteralKind.BITS
    if base == "json" and not mariadb:
        return LiteralKind.JSON
    return LiteralKind.BYTES if base in BYTES or base in ("geometry", "vector") else LiteralKind.TEXT


def literal_kinds(layout: TableLayout, *, mariadb: bool) -> bytes:
    """The kinds of all columns of a layout."""
    return bytes(literal_kind(column, mariadb=mariadb) for column in layout.columns)


def index_part(column: Column) -> str:
    """The length of a column's prefix in an index, in parentheses; "" for all of it."""
    kind = parse(column.type)
    long = kind.base in CHARACTERS or kind.base in BYTES
    if long and (not kind.sizes or kind.sizes[0] > _INDEXED):
        return f"({_PREFIX})"
    return ""


def declared(text: str) -> str:
    """A type of information_schema.COLUMNS without what makes no difference to values.

    Args:
        text: `COLUMN_TYPE`: `int(11) unsigned` and `int unsigned` are one type, and so are all lengths of a text.
    """
    kind = _WIDTH.sub(r"\1", text.lower())
    unsigned = kind.endswith((" unsigned", " unsigned zerofill"))
    base = kind.split("(")[0].split(" ")[0]
    if base in ("enum", "set"):
        return base
    return family(Column("", kind.split(" ")[0] if base != "decimal" else kind.split(" unsigned")[0], unsigned))
