"""The syntax tree of ALTER TABLE's clauses.

A new clause is a class here and a member of `Clause`, created by `parse_alter`; mypy then names every visitor that does
not handle it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NoReturn, assert_never

from connector.ddl.syntax.ast_column import (
    Default,
    DefinedColumn,
    Expression,
    Name,
    NotUnderstood,
    SourceSpan,
    TableReference,
)
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
        optional: true with IF EXISTS.
        column: the column's name.
        defaulted: true if it sets or drops the default; otherwise it sets the column's visibility.
        expression: the default's expression in parentheses; None: none.
        default: the default it sets; None: none, or one that is not understood.
    """

    span: SourceSpan
    optional: bool
    column: Name
    defaulted: bool
    expression: Expression | None
    default: Default | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP [COLUMN] [IF EXISTS] name."""

    span: SourceSpan
    optional: bool
    column: Name


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP of an index, key or constraint.

    Args:
        span: the clause.
        primary: true for the primary key.
        index: the name of the index that it may be; "" for a foreign key or a check.
        unique: true if it drops only a unique index: DROP CONSTRAINT.
    """

    span: SourceSpan
    primary: bool
    index: str = ""
    unique: bool = False


@dataclass(frozen=True, slots=True)
class RenameIndex:
    """RENAME INDEX old TO new."""

    span: SourceSpan
    old: str
    new: str


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
    """EXCHANGE PARTITION, and MariaDB's CONVERT TABLE or PARTITION: move rows between tables without row events."""

    span: SourceSpan
    partner: TableReference


@dataclass(frozen=True, slots=True)
class NoEffect:
    """A clause without effect on rows and columns: ALGORITHM, LOCK, ENABLE KEYS …"""

    span: SourceSpan


@dataclass(frozen=True, slots=True)
class UnknownClause:
    """A clause whose first word is not known, or text that follows a clause without a comma."""

    span: SourceSpan
    reason: str

    def stop(self) -> NoReturn:
        """Refuse the statement because of this clause."""
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
    | RenameIndex
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
    """The text between two commas: a clause, and those that follow it without a comma."""

    span: SourceSpan
    clauses: tuple[Clause, ...]


def items_of(clause: Clause) -> tuple[TableItem | UnknownClause, ...]:
    """Return the definitions of columns, keys and constraints in a clause, or an unknown clause, which may be one."""
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
        case NoEffect() | RenameIndex():
            return ()
        case _:
            assert_never(clause)


def naming_another_table(clause: Clause) -> RenameTo | ExchangeRows | None:
    """Return the clause if it names a table besides the altered one and those of foreign keys."""
    match clause:
        case RenameTo() | ExchangeRows():
            return clause
        case AddColumn() | AddColumns() | AddConstraint() | ModifyColumn() | ChangeColumn() | RenameColumn():
            return None
        case AlterColumn() | DropColumn() | DropConstraint() | ConvertCharset() | TableCharset() | OtherOption():
            return None
        case Partitioning() | OrderBy() | PartitionClause() | NoEffect() | UnknownClause() | NotUnderstood():
            return None
        case RenameIndex():
            return None
        case _:
            assert_never(clause)
