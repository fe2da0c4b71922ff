"""The layout of a table's rows in a change: its columns and its primary key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class TableName(NamedTuple):
    """A table of the source."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the source, as it was defined when the row was written.

    Args:
        name: the column's name.
        type: MySQL's type as `information_schema.COLUMN_TYPE` writes it, in lower case, without width for
            integers: `bigint`, `decimal(65,30)`, `varchar(255)`, `datetime(6)`, `enum`, `set`, `bit(17)` …
        unsigned: true for unsigned numbers.
        charset: of text columns, MySQL's name (`utf8mb4`, `latin1` …); `binary` for bytes; "" otherwise.
        labels: the labels of enum and set columns, in index order.
        nullable: the source allows NULL.
    """

    name: str
    type: str
    unsigned: bool = False
    charset: str = ""
    labels: tuple[str, ...] = ()
    nullable: bool = True

    @property
    def base(self) -> str:
        """The type without its arguments: `varchar`."""
        return self.type.partition("(")[0]


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table's columns, in order, and the indexes of those that are its primary key (empty when none)."""

    name: TableName
    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()
