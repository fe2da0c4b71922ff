"""What a DDL statement does to the tables of a target, said without any target's SQL."""

from __future__ import annotations

from dataclasses import dataclass

from connector.errors import Unsupported
from connector.log.transaction.layout import Column, TableName
from connector.targets.narrowing import Tail, Unfit
from connector.targets.table import Table

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
        unfit: values that would not stay what they are: one of them stops (`write/narrowing.py`).
    """

    name: str
    pad: str = ""
    filled: bool = False
    unfit: tuple[Unfit, ...] = ()

    @property
    def cut(self) -> int:
        """How many characters are cut off at the end of each value's text."""
        return max((one.cut for one in self.unfit if isinstance(one, Tail)), default=0)


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


def would_change(change: AlterTable, column: Column, value: object) -> Unsupported:
    """That existing rows have a value which does not stay what it is."""
    kind = f"{column.type}{' unsigned' if column.unsigned else ''}{f' {column.charset}' if column.charset else ''}"
    return Unsupported(
        f"column {column.name} of {change.before.name} becomes {kind}: its value {value!r:.100} would be another one",
        hint="a source in strict mode refuses that, unless it cuts blanks or digits off: thl verify tells whether the "
        "target is as the source was",
        table=change.before.name,
    )


Operation = CreateSchema | DropSchema | CreateTable | DropTable | RenameTable | Truncate | AlterTable | IndexKey
