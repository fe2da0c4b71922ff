"""MySQL's types, and what is the same value in another of them.

The names are those of `log.transaction.layout.Column.type`. What each becomes on a target is in `sqlite_types` and
`postgres_types`; docs/types.md shows the whole table.
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
    """A type taken apart: `decimal(10,2)` is base `decimal`, sizes (10, 2)."""

    base: str
    sizes: tuple[int, ...] = ()


@lru_cache(maxsize=4096)
def parse(text: str) -> Type:
    """Take a type apart.

    Raises:
        Unsupported: a type that is not one of ours.
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
    """How many fractional digits a time, datetime or timestamp has."""
    sizes = parse(column.type).sizes
    return sizes[0] if sizes else 0


def family(column: Column) -> str:
    """What a value of the column is, as both a TABLE_MAP and a CREATE TABLE tell it.

    Lengths of text and bytes are left out: the two count them differently. So are charsets: values are UTF-8.
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
        pad: what is appended to the text of values that are not NULL, e.g. "00" from decimal(5,1) to decimal(7,3).
    """

    pad: str = ""


def widening(old: Column, new: Column) -> Widening | None:
    """How values of `old` become values of `new`, or None unless every one of them stays the same value."""
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
    """The least and the greatest value of an integer column."""
    bits = INTEGERS[parse(column.type).base]
    return (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def room_of(kind: Type) -> int:
    """The most bytes that a value of a type of bytes has."""
    return BLOBS[kind.base] if kind.base in BLOBS else kind.sizes[0]


def _signed(old: Column, new: Column) -> bool:
    """Whether negative values, if the old type had any, stay."""
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
    """Whether every text (or bytes) of one type fits the other unchanged.

    char loses trailing blanks and binary gains zero bytes: neither may be the new type of another one.
    A character has at most four bytes.
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
