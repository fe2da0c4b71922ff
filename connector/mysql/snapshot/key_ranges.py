"""Ranges of a table's primary key, as conditions in SQL.

A bound is a literal for each of the leading columns of the key. The server compares it with the columns as it compares
rows in the index, so ranges that follow each other hold each row once, whatever the collation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol

from connector.ddl.syntax.type_names import INTEGERS

Bound = tuple[str, ...]

PLAIN: Final = frozenset({*INTEGERS, "year", "decimal"})
DATES: Final = frozenset({"date", "datetime", "timestamp"})
TEXTS: Final = frozenset({"char", "varchar"})
BYTES: Final = frozenset({"binary", "varbinary"})

_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_NUMBER: Final = re.compile(r"-?[0-9]{1,65}(\.[0-9]{1,30})?")
_HEXADECIMAL: Final = re.compile(r"([0-9A-F]{2})*")
_DATE: Final = re.compile(_DAY)
_DATE_AND_TIME: Final = re.compile(f"{_DAY} {_TIME}")


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a primary key whose values can be written as literals without loss.

    Args:
        name: the name, quoted.
        base: the type's name.
        charset, collation: of a text, by the server's names.
    """

    name: str
    base: str
    charset: str = ""
    collation: str = ""

    @property
    def hexadecimal(self) -> bool:
        """True if `select` gives a value's bytes as hexadecimal digits."""
        return self.base in TEXTS or self.base in BYTES

    @property
    def select(self) -> str:
        """An expression whose text `literal` takes."""
        return f"HEX({self.name})" if self.hexadecimal else f"CAST({self.name} AS CHAR)"

    def literal(self, text: str) -> str:
        """A value as an SQL literal that compares as the value does."""
        if self.base in PLAIN:
            return text
        if self.base in DATES:
            return f"'{text}'"
        return f"_{self.charset} x'{text}' COLLATE {self.collation}" if self.charset else f"x'{text}'"

    def wrote(self, literal: str) -> bool:
        """True if `literal` can have returned this for a value of the column, so that it is no other SQL."""
        before, after = self.literal("|").split("|")
        text = literal.removeprefix(before).removesuffix(after)
        return self.can_give(text) and self.literal(text) == literal

    def can_give(self, text: str) -> bool:
        """True if `select` can give a text, so that `literal` makes no other SQL of it."""
        if self.hexadecimal:
            form = _HEXADECIMAL
        elif self.base in PLAIN:
            form = _NUMBER
        else:
            form = _DATE if self.base == "date" else _DATE_AND_TIME
        return form.fullmatch(text) is not None


def key_column(name: str, base: str, charset: str | None, collation: str | None) -> KeyColumn | None:
    """A column as one that a table can be divided by; None: its values have no lossless literal."""
    if base in TEXTS and charset and collation:
        return KeyColumn(name, base, charset, collation)
    return KeyColumn(name, base) if base in PLAIN or base in DATES or base in BYTES else None


class Keys(Protocol):
    """Keys of a table."""

    def condition(self, columns: tuple[KeyColumn, ...]) -> str:
        """An SQL condition that the rows of these keys fulfil; "" for all rows."""


def is_key(bound: Bound, columns: tuple[KeyColumn, ...]) -> bool:
    """True if a bound that others may have written has one literal for each column, and nothing else."""
    return len(bound) == len(columns) and all(map(KeyColumn.wrote, columns, bound))


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys after one bound, up to and including another one; None: no bound.

    Args:
        after: the greatest key below the range.
        to: the greatest key that can be in the range.
    """

    after: Bound | None = None
    to: Bound | None = None

    def condition(self, columns: tuple[KeyColumn, ...]) -> str:
        """The range as an SQL condition; "" for all rows."""
        bounds = [_beyond(columns, self.after, ">", ">")] if self.after else []
        if self.to:
            bounds.append(_beyond(columns, self.to, "<", "<="))
        return " AND ".join(bounds)


def _beyond(columns: tuple[KeyColumn, ...], bound: Bound, compare: str, last: str) -> str:
    """Written out, because the server finds no range in the index for `(a, b) > (1, 2)`."""
    ways = []
    for index in range(len(bound)):
        equal = [f"{column.name} = {value}" for column, value in zip(columns[:index], bound[:index], strict=True)]
        operator = last if index == len(bound) - 1 else compare
        ways.append(" AND ".join([*equal, f"{columns[index].name} {operator} {bound[index]}"]))
    return f"({' OR '.join(f'({way})' for way in ways)})" if len(ways) > 1 else ways[0]
