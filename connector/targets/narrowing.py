"""Changes of a column's type that may change values, and conditions that find these values.

In strict mode the source refuses such a change if a value does not fit, except for blanks at the end of a text and
digits after the decimal point, which it cuts off in any mode. In other modes it changes the value. The target has the
source's values, so it can check them: if every value fits, the source changed none. Otherwise the applier stops.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from connector.ddl.syntax.type_names import CHARACTERS, FLOATS, INTEGERS, TEMPORALS, TEXTS, width
from connector.log.transaction.layout import Column
from connector.targets.types import BYTES, Type, fraction, parse, room_of, whole_range

Value = int | float | str | bytes
"""A value as the log has it: long, double, string or bytes."""

_EVERYTHING = ("utf8mb4", "utf16", "utf16le", "utf32", "gb18030")  # sets with every character of Unicode
_BMP = {"utf8mb3": 0xFFFF, "ucs2": 0xFFFF, "ascii": 0x7F}  # the last character of a set that has all before it


@dataclass(frozen=True, slots=True)
class Outside:
    """Integers below `low` or above `high`; None for no bound."""

    low: int | None
    high: int | None

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        number = int(str(value))
        return (self.low is not None and number < self.low) or (self.high is not None and number > self.high)


@dataclass(frozen=True, slots=True)
class Negative:
    """Numbers below zero."""

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        return Decimal(str(value)) < 0


@dataclass(frozen=True, slots=True)
class Digits:
    """Numbers with more digits before the decimal point."""

    count: int

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        return abs(Decimal(str(value))) >= Decimal(10) ** self.count


@dataclass(frozen=True, slots=True)
class Tail:
    """Numbers and times with a digit other than 0 after the decimal places that remain.

    Args:
        places: decimal places that remain.
        cut: characters to cut off the value's text, with the decimal point if no place remains.
    """

    places: int
    cut: int

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        return bool(str(value)[-self.cut :].strip(".0"))


@dataclass(frozen=True, slots=True)
class Longer:
    """Texts with more characters."""

    count: int

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        return len(str(value)) > self.count


@dataclass(frozen=True, slots=True)
class Larger:
    """Bytes, or texts in UTF-8, with more bytes."""

    count: int

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        return len(value if isinstance(value, bytes) else str(value).encode()) > self.count


@dataclass(frozen=True, slots=True)
class OtherSize:
    """Byte strings of another length."""

    count: int

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        return not isinstance(value, bytes) or len(value) != self.count


@dataclass(frozen=True, slots=True)
class Blank:
    """Texts with a blank at the end."""

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        return str(value).endswith(" ")


@dataclass(frozen=True, slots=True)
class Beyond:
    """Texts with a character above this code point."""

    last: int

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        return any(ord(character) > self.last for character in str(value))


@dataclass(frozen=True, slots=True)
class NotOneOf:
    """Texts other than these."""

    labels: tuple[str, ...]

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        return value not in self.labels


@dataclass(frozen=True, slots=True)
class Has:
    """Sets with this member."""

    label: str

    def matches(self, value: Value) -> bool:
        """True if a value matches."""
        return self.label in str(value).split(",")


Unfit = Outside | Negative | Digits | Tail | Longer | Larger | OtherSize | Blank | Beyond | NotOneOf | Has
"""A condition for values that the new type would change. NULL never matches."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A change of type that keeps values unless they match a condition.

    Args:
        unfit: the conditions.
        pad: text appended to values that are not NULL.
    """

    unfit: tuple[Unfit, ...]
    pad: str = ""


def narrowing(old: Column, new: Column) -> Narrowing | None:
    """The change from `old` to `new`; None if no condition finds the values that would change."""
    was, becomes = parse(old.type), parse(new.type)
    if was.base in INTEGERS and becomes.base in INTEGERS:
        return Narrowing((_outside(old, new),))
    if was.base == becomes.base and was.base in FLOATS:
        return Narrowing((Negative(),))
    if was.base == becomes.base == "decimal":
        return _decimal(old, new)
    if was.base == becomes.base and was.base in TEMPORALS:
        return Narrowing((_tail(fraction(old), fraction(new)),))
    if was.base == becomes.base == "set":
        return _members(old, new)
    if was.base in BYTES and becomes.base in BYTES:
        if becomes.base == "binary":
            return Narrowing((OtherSize(becomes.sizes[0]),))
        return Narrowing((Larger(room_of(becomes)),))
    if was.base in (*CHARACTERS, "enum", "set") and (another := recoded(old.charset, new.charset)) is not None:
        if becomes.base == "enum":
            return Narrowing((NotOneOf(new.labels),))
        if becomes.base in CHARACTERS:
            return Narrowing((*another, *_sizes(was, becomes, new.charset)))
    return None


def recoded(old: str, new: str) -> tuple[Unfit, ...] | None:
    """Conditions for the texts that another character set would change; None if they are not known.

    Args:
        old, new: the character sets; "" if only the source knows.
    """
    if new in (old, *_EVERYTHING) or (old == "ascii" and new == "latin1"):
        return ()
    if new in _BMP:
        known_smaller = new != "ascii" and old not in ("", *_EVERYTHING)
        return () if known_smaller or old == "ascii" else (Beyond(_BMP[new]),)
    return None


def _outside(old: Column, new: Column) -> Outside:
    (low, high), (lowest, highest) = whole_range(old), whole_range(new)
    return Outside(lowest if lowest > low else None, highest if highest < high else None)


def _tail(before: int, after: int) -> Tail:
    return Tail(after, before - after + (after == 0))


def _decimal(old: Column, new: Column) -> Narrowing:
    (digits, scale), (more, wider) = parse(old.type).sizes, parse(new.type).sizes
    unfit: list[Unfit] = []
    if more - wider < digits - scale:
        unfit.append(Digits(more - wider))
    if new.unsigned and not old.unsigned:
        unfit.append(Negative())
    if wider < scale:
        unfit.append(_tail(scale, wider))
    pad = "" if wider <= scale else ("." if scale == 0 else "") + "0" * (wider - scale)
    return Narrowing(tuple(unfit), pad)


def _members(old: Column, new: Column) -> Narrowing | None:
    """A value lists its members in the definition's order, so members that stay must keep their order."""
    kept = [label for label in old.labels if label in new.labels]
    if kept != [label for label in new.labels if label in old.labels]:
        return None
    return Narrowing(tuple(Has(label) for label in old.labels if label not in new.labels))


def _sizes(was: Type, becomes: Type, charset: str) -> tuple[Unfit, ...]:
    """Conditions for texts that are too long; a CHAR also loses blanks at its end."""
    if becomes.base in TEXTS:
        room = TEXTS[becomes.base]
        by_characters = charset in ("", "ucs2", *_EVERYTHING[1:])  # UTF-8 is not longer than the others
        return (Longer(room // width(charset)) if by_characters else Larger(room),)
    longer = Longer(becomes.sizes[0])
    return (longer, Blank()) if becomes.base == "char" and was.base != "char" else (longer,)
