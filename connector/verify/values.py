"""Converts values to the form in which they are compared: None, or bytes that do not depend on the storage.

| kind | form |
|---|---|
| number: integers, decimals, years | its decimal digits, without leading zeros |
| double: float, double | its exact binary value, as `float.hex` writes it |
| text: everything that MySQL shows as characters | UTF-8 |
| bytes | themselves |

A target's value of a wrong type (a blob instead of a text) is marked, so that it is never equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

Form = bytes | None
Row = tuple[Form, ...]

_LEADING_ZEROS = re.compile(rb"^(-?)0+(?=\d)")


class ValueForm(StrEnum):
    """The form of a column's values."""

    NUMBER = "number"
    DOUBLE = "double"
    TEXT = "text"
    BYTES = "bytes"


_NUMBERS = frozenset(["tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year"])
_BYTES = frozenset(["binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"])
_SPATIAL = frozenset(
    [
        *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
        *("geomcollection", "geometrycollection"),  # since 8.0, and before
    ]
)
_FIXED = {"uuid": 16, "inet4": 4, "inet6": 16}


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of the source.

    Args:
        name: name of the column.
        kind: the form of its values.
        padded: true if MySQL prints leading zeros: ZEROFILL and YEAR.
        fraction: the number of fractional digits of a second that MySQL prints.
        bits: the length of a BIT column; else 0.
        fixed: the length of a MariaDB type that is bytes in the log and text in a SELECT; else 0.
    """

    name: str
    kind: ValueForm
    padded: bool = False
    fraction: int = 0
    bits: int = 0
    fixed: int = 0


def column_of(name: str, data_type: str, column_type: str) -> ComparedColumn:
    """Return a column of `information_schema.COLUMNS`."""
    base = data_type.lower()
    if base in _FIXED:
        return ComparedColumn(name, ValueForm.BYTES, fixed=_FIXED[base])
    if base in _NUMBERS:
        return ComparedColumn(name, ValueForm.NUMBER, padded=base == "year" or "zerofill" in column_type.lower())
    if base in {"float", "double"}:
        return ComparedColumn(name, ValueForm.DOUBLE)
    size = re.search(r"\((\d+)\)", column_type)
    number = int(size[1]) if size else 0
    if base in {"time", "datetime", "timestamp"}:
        return ComparedColumn(name, ValueForm.TEXT, fraction=number)
    if base == "bit":
        return ComparedColumn(name, ValueForm.BYTES, bits=number)
    return ComparedColumn(name, ValueForm.BYTES if base in _BYTES or base in _SPATIAL else ValueForm.TEXT)


def number_form(digits: bytes) -> bytes:
    """Return digits without leading zeros."""
    return _LEADING_ZEROS.sub(rb"\1", digits)


def double_form(value: float) -> bytes:
    """Return a floating point number exactly, in hexadecimal."""
    return value.hex().encode()


def with_number_forms(row: Row, columns: Sequence[tuple[int, bool]]) -> Row:
    """Return a row with its numbers in the form in which they are compared.

    Args:
        row: values as the server's digits.
        columns: the indexes of numbers; true: of a double.
    """
    values = list(row)
    for index, double in columns:
        value = values[index]
        if value is not None:
            values[index] = double_form(float(value)) if double else number_form(value)
    return tuple(values)


def shown(value: Form, limit: int = 60) -> str:
    """Return a value for people, cut at `limit` bytes."""
    if value is None:
        return "NULL"
    try:
        text = value[:limit].decode()
    except UnicodeDecodeError:
        text = "0x" + value[: limit // 2].hex()
    return (text if text.isprintable() else repr(text)) + ("…" if len(value) > limit else "")
