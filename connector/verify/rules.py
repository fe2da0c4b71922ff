"""Applies the rules of `source.filters.tables` to the source's values, for the comparison.

Shares no code with the transforms of the producer (`mysql.values.row_transform`), so that it finds their faults.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from connector.config.filters import Mask, TableRule, finds_column
from connector.verify.values import ComparedColumn, Form, Row, double_form

DATES: Final = frozenset(("date", "datetime", "timestamp"))
ZERO: Final = b"0000-00-00"
ROWS: Final = frozenset(("insert", "update", "delete"))

Change = Callable[[Form], Form]


def comparable(rule: TableRule | None) -> bool:
    """Return True if the target's rows must equal the source's: not if a rule omits inserts, updates or deletes."""
    return rule is None or set(rule.actions) >= ROWS


def kept(rule: TableRule | None, column: str) -> bool:
    """Return True if a column is published."""
    return rule is None or not finds_column(rule.drop, column)


def change_of(
    rule: TableRule | None, column: ComparedColumn, base: str, *, key: bool, hash_key: bytes
) -> Change | None:
    """Return the change that a rule makes to a column's values; None: it makes none.

    Args:
        rule: the rule of its table.
        column: the column, under the source's name.
        base: the name of its type.
        key: true for a column of the primary key.
        hash_key: the key of hashes.
    """
    if rule is None:
        return None
    for pattern, mask in rule.mask.items():
        if finds_column((pattern,), column.name):
            return _masked(mask, base, hash_key)
    if not key and base in DATES and finds_column(rule.zero_dates, column.name):
        return _without_zero
    return None


def changed(rows: Iterable[Row], changes: Sequence[tuple[int, Change]]) -> Iterable[Row]:
    """Return the rows with changed values; `changes` has the indexes of the columns."""
    for row in rows:
        values = list(row)
        for index, change in changes:
            values[index] = change(values[index])
        yield tuple(values)


def _masked(mask: Mask, base: str, hash_key: bytes) -> Change:
    if mask.hash is not None:
        return partial(_hashed, hash_key, mask.hash)
    if mask.truncate is not None:
        return partial(_beginning, mask.truncate)
    fixed = _fixed(mask.fixed, base)
    return lambda _: fixed


def _fixed(value: str | int | float | None, base: str) -> Form:
    if value is None:
        return None
    if base == "float":  # of single precision on the source
        return double_form(struct.unpack("f", struct.pack("f", value))[0])
    return double_form(float(value)) if base == "double" else str(value).encode()


def _hashed(key: bytes, digits: int, value: Form) -> Form:
    return None if value is None else hmac.digest(key, value, "sha256").hex()[:digits].encode()


def _beginning(characters: int, value: Form) -> Form:
    return None if value is None else value.decode()[:characters].encode()


def _without_zero(value: Form) -> Form:
    return None if value is None or value.startswith(ZERO) else value
