"""The syntax tree of one DDL statement: what it says and where it says so, before any table is looked at.

`parse` makes it, and nothing else reads tokens. What looks at it (schema changes, affected tables, dropped and renamed
columns, cascading foreign keys, a target's plans) goes through `Command`, `Clause`, `TableItem` and `Attribute` with
`match` and `assert_never`: mypy names every place that has not considered a new kind.

A part that the grammar does not have is `NotUnderstood` where it stands. Each visitor decides whether it needs that
part, and raises `Unsupported` with its reason if it does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, assert_never

from connector.ddl.ast_table import (
    Constraint,
    DefinedColumn,
    Expression,
    IndexParts,
    LikeTable,
    Name,
    NotUnderstood,
    OtherOption,
    PartitionEffect,
    Partitioning,
    Span,
    TableBody,
    TableCharset,
    TableItem,
    TableReference,
)
from connector.ddl.tokens import Token
from connector.errors import Unsupported

# Clauses of ALTER TABLE


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD [COLUMN] [IF NOT EXISTS] column; `optional` is the condition."""

    span: Span
    optional: bool
    column: DefinedColumn


@dataclass(frozen=True, slots=True)
class AddColumns:
    """ADD [COLUMN] [IF NOT EXISTS] (column or constraint, …)."""

    span: Span
    optional: bool
    items: tuple[TableItem, ...]


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """ADD of an index, key or constraint."""

    span: Span
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class ModifyColumn:
    """MODIFY [COLUMN] [IF EXISTS]."""

    span: Span
    optional: bool
    column: DefinedColumn


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE [COLUMN] [IF EXISTS] old new definition."""

    span: Span
    optional: bool
    old: Name
    column: DefinedColumn


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN [IF EXISTS] old TO new."""

    span: Span
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

    span: Span
    optional: bool
    column: Name
    defaulted: bool
    expression: Expression | None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP [COLUMN] [IF EXISTS] name."""

    span: Span
    optional: bool
    column: Name


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP of an index, key or constraint; `primary`: of the primary key."""

    span: Span
    primary: bool


@dataclass(frozen=True, slots=True)
class RenameTo:
    """RENAME [TO | AS | =] table."""

    span: Span
    table: TableReference


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET."""

    span: Span
    charset: str


@dataclass(frozen=True, slots=True)
class OrderBy:
    """ORDER BY, to the statement's end."""

    span: Span
    columns: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class PartitionClause:
    """A clause about partitions, to the statement's end."""

    span: Span
    effect: PartitionEffect


@dataclass(frozen=True, slots=True)
class ExchangeRows:
    """EXCHANGE PARTITION and MariaDB's CONVERT TABLE or PARTITION: rows go to or come from another table, which no row
    event tells."""

    span: Span
    partner: TableReference


@dataclass(frozen=True, slots=True)
class NoEffect:
    """A clause that touches neither rows nor columns: ALGORITHM, LOCK, ENABLE KEYS, RENAME INDEX …"""

    span: Span


@dataclass(frozen=True, slots=True)
class UnknownClause:
    """A clause whose first word is not known, or what stands behind a clause without a comma."""

    span: Span
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
    """What stands between two commas: a clause, and those that may follow it without a comma."""

    span: Span
    clauses: tuple[Clause, ...]


# Statements


@dataclass(frozen=True, slots=True)
class OtherStatement:
    """Accounts, views, triggers, temporary tables …: no rows that the log has, nor definitions of them.

    Args:
        doubt: why that is not certain; "" where it is.
    """

    doubt: str = ""


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE DATABASE."""

    schema: Name
    replace: bool
    options: SchemaOptions | NotUnderstood


@dataclass(frozen=True, slots=True)
class AlterSchema:
    """ALTER DATABASE; `schema` None: the session's."""

    schema: Name | None
    options: SchemaOptions | NotUnderstood


@dataclass(frozen=True, slots=True)
class DropSchema:
    """DROP DATABASE."""

    schema: Name


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """Options of a schema; `charset` "" where they name none."""

    charset: str


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE; the body is not understood where it is a SELECT, too."""

    table: TableReference
    optional: bool
    replace: bool
    body: TableBody | LikeTable | NotUnderstood


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE."""

    table: TableReference
    parts: tuple[AlterPart, ...]

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """Its clauses, in order."""
        return tuple(clause for part in self.parts for clause in part.clauses)


@dataclass(frozen=True, slots=True)
class DropTables:
    """DROP TABLE, or MariaDB's DROP SEQUENCE."""

    tables: tuple[TableReference, ...]
    optional: bool
    sequences: bool


@dataclass(frozen=True, slots=True)
class RenameTables:
    """RENAME TABLE old TO new, …"""

    pairs: tuple[tuple[TableReference, TableReference], ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """TRUNCATE; `waits`: with WAIT, NOWAIT or STORAGE, which are MariaDB's."""

    table: TableReference
    waits: bool


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE INDEX … ON."""

    table: TableReference
    parts: IndexParts


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX … ON; `primary`: of the primary key."""

    table: TableReference
    primary: bool


@dataclass(frozen=True, slots=True)
class CreateSequence:
    """MariaDB's CREATE SEQUENCE: a table of one row, which it writes as rows."""

    table: TableReference
    optional: bool


@dataclass(frozen=True, slots=True)
class AlterSequence:
    """MariaDB's ALTER SEQUENCE."""

    table: TableReference


Command = (
    OtherStatement
    | CreateSchema
    | AlterSchema
    | DropSchema
    | CreateTable
    | AlterTable
    | DropTables
    | RenameTables
    | TruncateTable
    | CreateIndex
    | DropIndex
    | CreateSequence
    | AlterSequence
)


def defined_items(command: Command) -> Iterator[TableItem | UnknownClause]:
    """Every definition of a column, key or constraint that a statement brings, and every part that may be one."""
    match command:
        case CreateTable(_, _, _, TableBody() as body):
            yield from body.items
            yield from (option for option in body.options if isinstance(option, NotUnderstood))
        case CreateTable(_, _, _, NotUnderstood() as body):
            yield body
        case AlterTable():
            for clause in command.clauses:
                yield from _items_of(clause)
        case _:
            pass


def _items_of(clause: Clause) -> tuple[TableItem | UnknownClause, ...]:
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


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """One reading of one statement.

    Args:
        sql: the text.
        tokens: all of them.
        command: what the statement is.
        variables: those that MariaDB's SET STATEMENT … FOR sets before it.
        rest: what stands behind a statement that should have ended.
    """

    sql: str
    tokens: tuple[Token, ...]
    command: Command
    variables: tuple[str, ...] | NotUnderstood = ()
    rest: NotUnderstood | None = None

    def text(self, span: Span) -> str:
        """The text of a part."""
        return self.sql[span.start : span.end]

    def places(self, span: Span) -> range:
        """The places in `tokens` of a part's tokens."""
        first, last = (bisect_left(self.tokens, end, key=lambda token: token.at) for end in span)
        return range(first, last)

    def within(self, span: Span) -> tuple[Token, ...]:
        """The tokens of a part."""
        places = self.places(span)
        return self.tokens[places.start : places.stop]
