"""Changes of a column's type that keep every value."""

from __future__ import annotations

from dataclasses import dataclass

from connector.ddl.syntax.type_names import BLOBS, CHARACTERS, FLOATS, INTEGERS, TEMPORALS, TEXTS
from connector.log.transaction.layout import Column
from connector.targets.types import BYTES, Type, fraction, parse, whole_range


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
