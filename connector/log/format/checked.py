"""Checks that decoded values from outside are of the types that their record or fragment declares.

Avro and JSON can hold any value under a right checksum. A wrong value is found where it is read, with its place, and
not where it is used.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from connector.log.rules import BrokenRule, Rule

T = TypeVar("T")
LATEST: Final = 253_402_214_400_000_000  # µs since 1970 UTC: the last day that every time zone has a date for
UNION: Final = type(int | str)
_IMAGES: Final = {"insert": ("after",), "update": ("before", "after"), "delete": ("before",), "read": ("after",)}
LEAST, MOST = -(1 << 63), (1 << 63) - 1
WRONG: Final = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""The exceptions that JSON of another shape, depth or length raises where it is read."""


def commit_time(value: int | None) -> int | None:
    """Return a commit time.

    Raises:
        ValueError: it is not between 1970 and `LATEST`.
    """
    if value is not None and not 0 <= value <= LATEST:
        raise ValueError(f"the commit time {value} is none")
    return value


def change(found: Mapping[str, Any]) -> None:
    """Check that a row change (`schemas/fragment.avsc`) fits its table.

    Raises:
        BrokenRule: an image has another number of values than columns.
        ValueError: the table has no columns, or the key names one that it does not have.
    """
    width = len(found["columns"])
    if not width or not all(0 <= index < width for index in found["key_columns"]):
        raise ValueError("a table without columns, or with a key of others")
    images = _IMAGES[found["action"]]
    for image in ("before", "after"):
        bits = found[f"{image}_present"]
        if bits and len(bits) * 8 < width:
            raise BrokenRule(Rule.IMAGE_COLUMNS, image=image)
        there = sum(bits[index // 8] >> index % 8 & 1 for index in range(width)) if bits else width
        for row in found["rows"]:
            values = row[image]
            if (values is not None) != (image in images) or (values is not None and len(values) != there):
                raise BrokenRule(
                    Rule.IMAGE_KIND if (values is not None) != (image in images) else Rule.IMAGE_VALUES, image=image
                )


def record(value: T) -> T:
    """Return a dataclass whose fields, and all that they contain, are of their declared types.

    Raises:
        TypeError: a field is of another type.
    """
    hints = _hints(cast(Hashable, type(value)))
    for field in fields(value):  # type: ignore[arg-type]
        held = getattr(value, field.name)
        # Compiled classes have no hints: their fields have types in C.
        if field.name in hints and not _fits(held, hints[field.name]):
            raise TypeError(f"{field.name} is {str(held)[:80]!r}")
    return value


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)


def _encodable(text: str) -> bool:
    """False for text with half a surrogate pair, which JSON can escape and no database takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fits(value: object, hint: Any) -> bool:
    if hint is Any:
        return True  # JSON that the module that reads it checks
    if isinstance(hint, NewType):
        return _fits(value, hint.__supertype__)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in {Union, UNION}:
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        each = inner[:1] * len(value) if inner[1:] == (...,) else inner
        return len(each) == len(value) and all(_fits(item, one) for item, one in zip(value, each, strict=True))
    if origin is Mapping:
        return isinstance(value, dict) and all(_fits(key, inner[0]) and _fits(value[key], inner[1]) for key in value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and LEAST <= value <= MOST
    if hint is str:
        return isinstance(value, str) and _encodable(value)
    if not isinstance(value, origin or hint):
        return False
    if isinstance(value, tuple):  # a NamedTuple
        return all(_fits(getattr(value, name), one) for name, one in _hints(type(value)).items())
    if is_dataclass(value):
        record(value)
    return True
