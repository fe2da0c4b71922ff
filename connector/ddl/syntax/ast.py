"""The syntax tree of one DDL statement: its parts and their places in the text, independent of any table.

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
from typing import assert_never

from connector.ddl.syntax.ast_column import (
    IndexParts,
    Name,
    NotUnderstood,
    SourceSpan,
    TableReference,
)
from connector.ddl.syntax.ast_table import (
    LikeTable,
    TableBody,
    TableItem,
)
from connector.ddl.syntax.clauses import AlterPart, Clause, UnknownClause, items_of
from connector.ddl.syntax.tokens import Token


@dataclass(frozen=True, slots=True)
class OtherStatement:
    """Accounts, views, triggers, temporary tables …: no rows that the log has, nor definitions of them.

    Args:
        doubt: why that is not certain; "" where it is.
    """

    doubt: str = ""


@dataclass(frozen=True, slots=True)
class CreateSchemaStatement:
    """CREATE DATABASE."""

    schema: Name
    replace: bool
    options: SchemaOptions | NotUnderstood


@dataclass(frozen=True, slots=True)
class AlterSchemaStatement:
    """ALTER DATABASE; `schema` None: the session's."""

    schema: Name | None
    options: SchemaOptions | NotUnderstood


@dataclass(frozen=True, slots=True)
class DropSchemaStatement:
    """DROP DATABASE."""

    schema: Name


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """Options of a schema; `charset` "" where they name none."""

    charset: str


@dataclass(frozen=True, slots=True)
class CreateTableStatement:
    """CREATE TABLE; the body is not understood where it is a SELECT, too."""

    table: TableReference
    optional: bool
    replace: bool
    body: TableBody | LikeTable | NotUnderstood


@dataclass(frozen=True, slots=True)
class AlterTableStatement:
    """ALTER TABLE."""

    table: TableReference
    parts: tuple[AlterPart, ...]

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """Its clauses, in order."""
        return tuple(clause for part in self.parts for clause in part.clauses)


@dataclass(frozen=True, slots=True)
class DropTablesStatement:
    """DROP TABLE, or MariaDB's DROP SEQUENCE."""

    tables: tuple[TableReference, ...]
    optional: bool
    sequences: bool


@dataclass(frozen=True, slots=True)
class RenameTablesStatement:
    """RENAME TABLE old TO new, …"""

    pairs: tuple[tuple[TableReference, TableReference], ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class TruncateTableStatement:
    """TRUNCATE."""

    table: TableReference


@dataclass(frozen=True, slots=True)
class CreateIndexStatement:
    """CREATE INDEX … ON."""

    table: TableReference
    parts: IndexParts


@dataclass(frozen=True, slots=True)
class DropIndexStatement:
    """DROP INDEX … ON; `primary`: of the primary key."""

    table: TableReference
    primary: bool


@dataclass(frozen=True, slots=True)
class CreateSequenceStatement:
    """MariaDB's CREATE SEQUENCE: a table of one row, which it writes as rows."""

    table: TableReference
    optional: bool


@dataclass(frozen=True, slots=True)
class AlterSequenceStatement:
    """MariaDB's ALTER SEQUENCE."""

    table: TableReference


Command = (
    OtherStatement
    | CreateSchemaStatement
    | AlterSchemaStatement
    | DropSchemaStatement
    | CreateTableStatement
    | AlterTableStatement
    | DropTablesStatement
    | RenameTablesStatement
    | TruncateTableStatement
    | CreateIndexStatement
    | DropIndexStatement
    | CreateSequenceStatement
    | AlterSequenceStatement
)


def defined_items(command: Command) -> Iterator[TableItem | UnknownClause]:
    """Every definition of a column, key or constraint that a statement brings, and every part that may be one."""
    match command:
        case CreateTableStatement(_, _, _, body):
            match body:
                case TableBody(_, _, items, _, options):
                    yield from items
                    yield from (option for option in options if isinstance(option, NotUnderstood))
                case NotUnderstood():
                    yield body
                case LikeTable():
                    pass
                case _:
                    assert_never(body)
        case AlterTableStatement():
            for clause in command.clauses:
                yield from items_of(clause)
        case (
            OtherStatement()
            | CreateSchemaStatement()
            | AlterSchemaStatement()
            | DropSchemaStatement()
            | DropTablesStatement()
            | RenameTablesStatement()
        ):
            pass
        case (
            TruncateTableStatement()
            | CreateIndexStatement()
            | DropIndexStatement()
            | CreateSequenceStatement()
            | AlterSequenceStatement()
        ):
            pass
        case _:
            assert_never(command)


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

    def text(self, span: SourceSpan) -> str:
        """The text of a part."""
        return self.sql[span.start : span.end]

    def places(self, span: SourceSpan) -> range:
        """The places in `tokens` of a part's tokens."""
        first, last = (bisect_left(self.tokens, end, key=lambda token: token.at) for end in span)
        return range(first, last)

    def within(self, span: SourceSpan) -> tuple[Token, ...]:
        """The tokens of a part."""
        places = self.places(span)
        return self.tokens[places.start : places.stop]
