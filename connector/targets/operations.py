"""Effects of a DDL statement on the tables of a target, without any target's SQL."""

from __future__ import annotations

from dataclasses import dataclass

from connector.errors import Unsupported
from connector.log.transaction.layout import Column, TableName
from connector.targets.narrowing import Tail, Unfit
from connector.targets.table import Table

Value = int | float | str | bytes | None
"""A value as in the log: long, double, string, bytes or null."""


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """Creates a database."""

    schema: str


@dataclass(frozen=True, slots=True)
class DropSchema:
    """Drops a database, after its tables."""

    schema: str


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Creates an empty table.

    Args:
        assumed: the source may have had the table, with other columns and rows: CREATE TABLE IF NOT EXISTS, and the log
            does not tell.
    """

    table: Table
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """Drops a table.

    Args:
        optional: the table may be missing: a user may have dropped it on the target.
    """

    table: Table
    optional: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Renames a table.

    Args:
        optional: the table may be missing: a user may have dropped it on the target.
    """

    table: Table
    name: TableName
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """Deletes all rows of a table."""

    table: Table


@dataclass(frozen=True, slots=True)
class Sweep:
    """Deletes the rows of a table whose keys are not marked, at the end of its load.

    Args:
        marks: the name of the table with the marked keys.
    """

    table: Table
    marks: str


@dataclass(frozen=True, slots=True)
class ExistingColumn:
    """A column's values come from an existing column.

    Args:
        name: the column's old name.
        pad: text appended to each value.
        filled: the column becomes NOT NULL; a NULL in it is an error.
        unfit: conditions for values that the new type would change; such a value is an error (`narrowing`).
    """

    name: str
    pad: str = ""
    filled: bool = False
    unfit: tuple[Unfit, ...] = ()

    @property
    def cut(self) -> int:
        """The number of characters to cut off at the end of each value's text."""
        return max((one.cut for one in self.unfit if isinstance(one, Tail)), default=0)


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A new column; existing rows get this value."""

    value: Value


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """A new column whose values in existing rows only the source knows: allowed for an empty table only."""

    reason: str


@dataclass(frozen=True, slots=True)
class AlterTable:
    """Changes a table's columns.

    Args:
        before, after: the table, under the same name.
        origins: for each column of `after`, the origin of its values.
    """

    before: Table
    after: Table
    origins: tuple[ExistingColumn | KnownValue | UnknownValue, ...]


@dataclass(frozen=True, slots=True)
class IndexKey:
    """Creates an index on columns of a table without a primary key, unless it has one."""

    table: Table
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllowNull:
    """Makes columns nullable that are NOT NULL on the source: the log's rows may have NULL there."""

    table: Table
    columns: frozenset[str]


def swept(operation: Sweep, rows: int) -> dict[str, object]:
    """The fields of the log's message about the deleted rows."""
    return {"table": operation.table.name, "rows": rows}


def value_would_change(change: AlterTable, column: Column, value: object) -> Unsupported:
    """The error for an existing value that the new type would change."""
    kind = f"{column.type}{' unsigned' if column.unsigned else ''}{f' {column.charset}' if column.charset else ''}"
    return Unsupported(
        f"a column gets a type that would change its value {value!r:.100}",
        hint="a source in strict mode refuses that, unless it cuts off blanks or digits: thl verify shows whether the "
        "target was equal to the source",
        table=change.before.name,
        column=column.name,
        type=kind,
    )


def values_are_unknown(change: AlterTable, column: Column, reason: str) -> Unsupported:
    """The error for a column whose values in existing rows only the source knows."""
    return Unsupported(
        f"existing rows get values that only the source knows: {reason}", table=change.before.name, column=column.name
    )


def column_has_nulls(change: AlterTable, column: str) -> Unsupported:
    """The error for a column that becomes NOT NULL and has NULLs."""
    return Unsupported("a column becomes NOT NULL and has NULLs", table=change.before.name, column=column)


Operation = (
    CreateSchema
    | DropSchema
    | CreateTable
    | DropTable
    | RenameTable
    | Truncate
    | Sweep
    | AlterTable
    | IndexKey
    | AllowNull
)
