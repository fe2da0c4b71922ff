"""What a DDL statement does to the tables of a target, said without any target's SQL."""

from __future__ import annotations

from dataclasses import dataclass

from connector.thl.layout import TableName
from connector.write.table import Table

Value = int | float | str | bytes | None
"""A value as the log has it: long, double, string, bytes or null."""


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """A database is made."""

    schema: str


@dataclass(frozen=True, slots=True)
class DropSchema:
    """A database is gone; its tables were dropped before."""

    schema: str


@dataclass(frozen=True, slots=True)
class CreateTable:
    """An empty table is made."""

    table: Table


@dataclass(frozen=True, slots=True)
class DropTable:
    """A table is gone.

    Args:
        optional: somebody may have dropped it on the target before.
    """

    table: Table
    optional: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    """A table has another name.

    Args:
        optional: somebody may have dropped it on the target before.
    """

    table: Table
    name: TableName
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """A table is empty."""

    table: Table


@dataclass(frozen=True, slots=True)
class Kept:
    """A column's values come from a column of before.

    Args:
        name: its name before.
        pad: what is appended to each value's text.
        filled: whether NULL is allowed no more: a NULL there stops.
    """

    name: str
    pad: str = ""
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Filled:
    """A column is new, and existing rows get this value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Unknowable:
    """A column is new, and only the source knows what existing rows get: right for an empty table alone."""

    reason: str


@dataclass(frozen=True, slots=True)
class AlterTable:
    """A table's columns are others.

    Args:
        before, after: the table, under the same name.
        origins: for each column of `after`, where its values come from.
    """

    before: Table
    after: Table
    origins: tuple[Kept | Filled | Unknowable, ...]


@dataclass(frozen=True, slots=True)
class IndexKey:
    """Rows of a table without a primary key are to be found by these columns; an index that is there will do."""

    table: Table
    columns: tuple[str, ...]


Operation = CreateSchema | DropSchema | CreateTable | DropTable | RenameTable | Truncate | AlterTable | IndexKey
