"""The syntax tree of ALTER TABLE's clauses.

A new clause is a class here, a part of `Clause`, and made by `parse_alter`: mypy then names every visitor that does not
say what it means there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NoReturn, assert_never

from connector.ddl.syntax.ast_column import DefinedColumn, Expression, Name, NotUnderstood, SourceSpan, TableReference
from connector.ddl.syntax.ast_table import Constraint, OtherOption, Partitioning, TableCharset, TableItem
from connector.errors import Unsupported


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD [COLUMN] [IF NOT EXISTS] column; `optional` is the condition."""

    span: SourceSpan
    optional: bool
    column: DefinedColumn


@dataclass(frozen=True, slots=True)
class AddColumns:
    """ADD [COLUMN] [IF NOT EXISTS] (column or constraint, …)."""

    span: SourceSpan
    optional: bool
    items: tuple[TableItem, ...]


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """ADD of an index, key or constraint."""

    span: SourceSpan
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class ModifyColumn:
    """MODIFY [COLUMN] [IF EXISTS]."""

    span: SourceSpan
    optional: bool
    column: DefinedColumn


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE [COLUMN] [IF EXISTS] old new definition."""

    span: SourceSpan
    optional: bool
    old: Name
    column: DefinedColumn


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN [IF EXISTS] old TO new."""

    span: SourceSpan
    optional: bool
    old: Name
    new: Name


@dataclass(frozen=True, slots=True)
class AlterColumn:
    """ALTER [COLUMN] [IF EXISTS] name …

    Args:
        span: the clause.
        optional: whether it has the condition.
        column: its name.
        defaulted: whether it sets another default or drops it; otherwise it is about how the column is shown.
        expression: the default's, in parentheses.
    """

    span: SourceSpan
    optional: bool
    column: Name
    defaulted: bool
    expression: Expression | None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP [COLUMN] [IF EXISTS] name."""

    span: SourceSpan
    optional: bool
    column: Name


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP of an index, key or constraint; `primary`: of the primary key."""

    span: SourceSpan
    primary: bool


@dataclass(frozen=True, slots=True)
class RenameTo:
    """RENAME [TO | AS | =] table."""

    span: SourceSpan
    table: TableReference


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET."""

    span: SourceSpan
    charset: str


@dataclass(frozen=True, slots=True)
class OrderBy:
    """ORDER BY, to the statement's end."""

    span: SourceSpan
    columns: tuple[Name, ...]


class PartitionEffect(Enum):
    """The effect on rows of a clause about partitions."""

    NONE = auto()
    ROWS_GONE = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class PartitionClause:
    """A clause about partitions, to the statement's end."""

    span: SourceSpan
    effect: PartitionEffect


@dataclass(frozen=True, slots=True)
class ExchangeRows:
    """EXCHANGE PARTITION and MariaDB's CONVERT TABLE or PARTITION: rows go to or come from another table, which no row
    event tells."""

    span: SourceSpan
    partner: TableReference


@dataclass(frozen=True, slots=True)
class NoEffect:
    """A clause that touches neither rows nor columns: ALGORITHM, LOCK, ENABLE KEYS, RENAME INDEX …"""

    span: SourceSpan


@dataclass(frozen=True, slots=True)
class UnknownClause:
    """A clause whose first word is not known, or what stands behind a clause without a comma."""

    span: SourceSpan
    reason: str

    def stop(self) -> NoReturn:
        """Refuse the statement for it."""
        raise Unsupported(self.reason)


Clause = (
    AddColumn
    | AddColumns
    | AddConstraint
    | ModifyColumn
    | ChangeColumn
    | RenameColumn
    | AlterColumn
    | DropColumn
    | DropConstraint
    | RenameTo
    | ConvertCharset
    | TableCharset
    | OtherOption
    | Partitioning
    | OrderBy
    | PartitionClause
    | ExchangeRows
    | NoEffect
    | UnknownClause
    | NotUnderstood
)


@dataclass(frozen=True, slots=True)
class AlterPart:
    """A clause, and those that follow it without a comma: the text between two commas."""

    span: SourceSpan
    clauses: tuple[Clause, ...]


def items_of(clause: Clause) -> tuple[TableItem | UnknownClause, ...]:
    """The definitions of columns, keys and constraints in a clause; one that is not understood may be one."""
    match clause:
        case AddColumn() | ModifyColumn() | ChangeColumn():
            return (clause.column,)
        case AddColumns(_, _, items):
            return items
        case AddConstraint(_, constraint):
            return (constraint,)
        case UnknownClause() | NotUnderstood():
            return (clause,)
        case RenameColumn() | AlterColumn() | DropColumn() | DropConstraint() | RenameTo() | ConvertCharset():
            return ()
        case TableCharset() | OtherOption() | Partitioning() | OrderBy() | PartitionClause() | ExchangeRows():
            return ()
        case NoEffect():
            return ()
        case _:
            assert_never(clause)


def naming_another_table(clause: Clause) -> RenameTo | ExchangeRows | None:
    """The clause, if it names a table besides the one that is altered and those of foreign keys."""
    match clause:
        case RenameTo() | ExchangeRows():
            return clause
        case AddColumn() | AddColumns() | AddConstraint() | ModifyColumn() | ChangeColumn() | RenameColumn():
            return None
        case AlterColumn() | DropColumn() | DropConstraint() | ConvertCharset() | TableCharset() | OtherOption():
            return None
        case Partitioning() | OrderBy() | PartitionClause() | NoEffect() | UnknownClause() | NotUnderstood():
            return None
        case _:
            assert_never(clause)
