"""MySQL's types, and changes of type that keep every value.

The names are those of `log.transaction.layout.Column.type`. `sqlite.types` and `postgres.types` have the types of the
targets; docs/types.md shows all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from connector.ddl.syntax.type_names import BLOBS, CHARACTERS, FLOATS, INTEGERS, TEMPORALS, TEXTS
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


@dataclass(frozen=True, slots=True)
class Widening:
    """A change of type that keeps every value.

    Args:
        pad: text appended to values that are not NULL, e.g. "00" from decimal(5,1) to decimal(7,3).
    """

    pad: str = ""


def widening(old: Column, new: Column) -> Widening | None:
    """The change from `old` to `new` if it keeps every value; otherwise None."""
    was, becomes = parse(old.type), parse(new.type)
    if was.base in INTEGERS and becomes.base in INTEGERS:
        (low, high), (lowest, highest) = whole_range(old), whole_range(new)
        return Widening() if lowest <= low and high <= highest else None
    if was.base in FLOATS and becomes.base in FLOATS:
        return Widening() if (was.base, becomes.base) != ("double", "float") and _signed(old, new) else None
    if was.base == becomes.base == "decimal":
        return _decimal(was, becomes) if _signed(old, new) else None
    if was.base == becomes.base and was.base in TEMPORALS:
        return _zeros(fraction(old), fraction(new))
    if was.base in CHARACTERS and becomes.base in CHARACTERS:
        # Of a TEXT the bytes are limited, and other characters may have more.
        charset = new.charset == old.charset or (new.charset == "utf8mb4" and was.base not in TEXTS)
        return Widening() if charset and _longer(was, becomes, TEXTS, "char") else None
    if was.base in BYTES and becomes.base in BYTES:
        return Widening() if _longer(was, becomes, BLOBS, "binary") else None
    if was.base == becomes.base == "enum":
        return Widening() if set(old.labels) <= set(new.labels) else None
    if was.base == becomes.base == "set":
        kept = tuple(label for label in new.labels if label in old.labels)
        return Widening() if kept == old.labels else None
    return Widening() if was == becomes else None


def whole_range(column: Column) -> tuple[int, int]:
    """The minimum and the maximum of an integer column."""
    bits = INTEGERS[parse(column.type).base]
    return (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def room_of(kind: Type) -> int:
    """The maximum length in bytes of a binary type."""
    return BLOBS[kind.base] if kind.base in BLOBS else kind.sizes[0]


def _signed(old: Column, new: Column) -> bool:
    """True if the new type has all negative values of the old one."""
    return old.unsigned or not new.unsigned


def _decimal(was: Type, becomes: Type) -> Widening | None:
    (digits, scale), (more, wider) = was.sizes, becomes.sizes
    return _zeros(scale, wider) if more - wider >= digits - scale else None


def _zeros(places: int, wanted: int) -> Widening | None:
    if wanted < places:
        return None
    if wanted == places:
        return Widening()
    return Widening(("." if places == 0 else "") + "0" * (wanted - places))


def _longer(was: Type, becomes: Type, large: dict[str, int], fixed: str) -> bool:
    """True if every text (or byte string) of one type fits the other unchanged.

    char loses trailing blanks and binary gains zero bytes, so neither may replace another type. A character has at most
    four bytes.
    """
    if becomes.base in large:
        width = 4 if fixed == "char" else 1
        room = large[becomes.base]
        return large[was.base] <= room if was.base in large else was.sizes[0] * width <= room
    if was.base in large or was.sizes[0] > becomes.sizes[0]:
        return False
    if becomes.base == fixed:
        return was.base == fixed and (fixed == "char" or was.sizes == becomes.sizes)
    return True
