"""The syntax tree of one DDL statement: its parts and their spans in the text, independent of any table.

Only `parse` reads tokens. Visitors (schema changes, affected tables, dropped and renamed columns, cascading foreign
keys, a target's plans) match `Command`, `Clause`, `TableItem` and `Attribute` with `match` and `assert_never`, so that
mypy names every visitor that does not handle a new kind.

A part that the grammar does not know is a `NotUnderstood` node. A visitor that needs the part raises `Unsupported` with
the reason.
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
    Index,
    LikeTable,
    TableBody,
    TableItem,
)
from connector.ddl.syntax.clauses import AlterPart, Clause, UnknownClause, items_of
from connector.ddl.syntax.tokens import Token


@dataclass(frozen=True, slots=True)
class OtherStatement:
    """A statement about accounts, triggers, temporary tables …, whose rows are not in the log.

    Args:
        doubt: the reason why this is not certain; "" if it is.
    """

    doubt: str = ""


@dataclass(frozen=True, slots=True)
class ViewStatement:
    """CREATE, ALTER or DROP VIEW. Views have no rows in the log, but no table can have their names."""

    views: tuple[TableReference, ...]
    dropped: bool


@dataclass(frozen=True, slots=True)
class CreateSchemaStatement:
    """CREATE DATABASE."""

    schema: Name
    replace: bool
    options: SchemaOptions | NotUnderstood


@dataclass(frozen=True, slots=True)
class AlterSchemaStatement:
    """ALTER DATABASE; `schema` None: the session's default schema."""

    schema: Name | None
    options: SchemaOptions | NotUnderstood


@dataclass(frozen=True, slots=True)
class DropSchemaStatement:
    """DROP DATABASE."""

    schema: Name


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """Options of a schema; `charset` is "" if they name none."""

    charset: str


@dataclass(frozen=True, slots=True)
class CreateTableStatement:
    """CREATE TABLE; a body with a SELECT is `NotUnderstood`, too."""

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
        """The clauses, in order."""
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
    """CREATE INDEX … ON.

    Args:
        table: the table.
        parts: the columns and expressions of the index.
        index: the index.
        replace: true if it replaces an index of the same name: MariaDB's OR REPLACE.
    """

    table: TableReference
    parts: IndexParts
    index: Index
    replace: bool = False


@dataclass(frozen=True, slots=True)
class DropIndexStatement:
    """DROP INDEX name ON; `primary`: drops the primary key."""

    table: TableReference
    primary: bool
    name: str = ""


@dataclass(frozen=True, slots=True)
class CreateSequenceStatement:
    """MariaDB's CREATE SEQUENCE: a table of one row, which is logged as rows."""

    table: TableReference
    optional: bool


@dataclass(frozen=True, slots=True)
class AlterSequenceStatement:
    """MariaDB's ALTER SEQUENCE."""

    table: TableReference


Command = (
    OtherStatement
    | ViewStatement
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
    """Yield every definition of a column, key or constraint in a statement, and every part that may be one."""
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
            | ViewStatement()
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
        sql: the statement's text.
        tokens: all tokens.
        command: the root node.
        variables: the variables of MariaDB's SET STATEMENT … FOR before it.
        rest: unexpected text after the statement; None: none.
    """

    sql: str
    tokens: tuple[Token, ...]
    command: Command
    variables: tuple[str, ...] | NotUnderstood = ()
    rest: NotUnderstood | None = None

    def text(self, span: SourceSpan) -> str:
        """Return the text of a part."""
        return self.sql[span.start : span.end]

    def token_indexes(self, span: SourceSpan) -> range:
        """Return the indexes in `tokens` of a part's tokens."""
        first, last = (bisect_left(self.tokens, end, key=lambda token: token.at) for end in span)
        return range(first, last)

    def within(self, span: SourceSpan) -> tuple[Token, ...]:
        """Return the tokens of a part."""
        indexes = self.token_indexes(span)
        return self.tokens[indexes.start : indexes.stop]
