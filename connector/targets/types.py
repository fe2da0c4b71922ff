"""MySQL's types as a target gets them.

The names are those of `log.transaction.layout.Column.type`. Each target's folder has its own in
`types`; docs/types.md shows all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from connector.ddl.syntax.type_names import BLOBS, CHARACTERS, FLOATS, INTEGERS, TEMPORALS
from connector.errors import Unsupported
from connector.log.transaction.layout import Column

BYTES = ("binary", "varbinary", *BLOBS)
ALONE = ("year", "date", "enum", "set", "json", "geometry")
SIZED = ("decimal", "bit", "vector", "char", "varchar", "binary", "varbinary")

_TYPE = re.compile(r"([a-z]+)(?:\((\d+)(?:,(\d+))?\))?")


@dataclass(frozen=True, slots=True)
class Type:
    """A parsed type: `decimal(10,2)` is base `decimal`, sizes (10, 2)."""

    base: str
    sizes: tuple[int, ...] = ()


@lru_cache(maxsize=4096)
def parse(text: str) -> Type:
    """Parse a type.

    Raises:
        Unsupported: an unknown type.
    """
    match = _TYPE.fullmatch(text)
    if match:
        base = match[1]
        sizes = tuple(int(size) for size in match.groups()[1:] if size)
        wanted = 2 if base == "decimal" else 1 if base in SIZED else len(sizes) if base in TEMPORALS else 0
        known = base in INTEGERS or base in FLOATS or base in CHARACTERS or base in BYTES or base in ALONE
        if len(sizes) == wanted and (known or base in TEMPORALS or base in SIZED):
            return Type(base, sizes)
    raise Unsupported(f"column type {text} is not known")


def fraction(column: Column) -> int:
    """The number of fractional digits of a time, datetime or timestamp."""
    sizes = parse(column.type).sizes
    return sizes[0] if sizes else 0


def family(column: Column) -> str:
    """The part of a column's type that a TABLE_MAP and a CREATE TABLE both have.

    Lengths of text and bytes are left out, because the two count them differently; character sets, because values
    are in UTF-8.
    """
    kind = parse(column.type)
    if kind.base in INTEGERS or kind.base in FLOATS or kind.base == "decimal":
        return f"{column.type}{' unsigned' if column.unsigned and kind.base in INTEGERS else ''}"
    if kind.base in CHARACTERS:
        return "text"
    if kind.base in BYTES:
        return "bytes"
    return kind.base if kind.base == "vector" else column.type


def whole_range(column: Column) -> tuple[int, int]:
    """The minimum and the maximum of an integer column."""
    bits = INTEGERS[parse(column.type).base]
    return (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def room_of(kind: Type) -> int:
    """The maximum length in bytes of a binary type."""
    return BLOBS[kind.base] if kind.base in BLOBS else kind.sizes[0]
