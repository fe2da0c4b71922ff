"""Finds the tables that a statement creates, alters, renames, truncates or drops.

A statement whose tables cannot be determined is `Unsupported`: they are never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import TableReference
from connector.ddl.syntax.ast_table import LikeTable
from connector.ddl.syntax.clauses import ExchangeRows, RenameTo, naming_another_table
from connector.ddl.syntax.parse import parse
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName


@dataclass(frozen=True, slots=True)
class AffectedTables:
    """The tables that a statement affects.

    Args:
        tables: the tables that it creates, alters, renames, truncates or drops, in order.
        verb: CREATE, ALTER, DROP, RENAME, TRUNCATE or INDEX. ALTER with two tables renames the first to the second;
            RENAME has pairs.
        schema: the schema that the statement creates, alters or drops; "" for a statement about tables.
        drops: true if it drops that schema.
        like: the other table of CREATE TABLE … LIKE.
        partner: the table with which the altered table exchanges rows without row events (EXCHANGE PARTITION).
        spans: the start and end in the text of the names of `tables`, `like` or `schema`.
    """

    tables: tuple[TableName, ...] = ()
    verb: str = ""
    schema: str = ""
    drops: bool = False
    like: TableName | None = None
    partner: TableName | None = None
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def truncates(self) -> bool:
        """True if the statement only deletes all rows."""
        return self.verb == "TRUNCATE"


NONE = AffectedTables()
"""The result for accounts, views, triggers, temporary tables …, whose rows are not in the log."""


def affected_tables(statement: Statement) -> AffectedTables:
    """Return the tables that a statement affects.

    Raises:
        Unsupported: they cannot be determined.
    """
    found = {_affected(parsed, statement.schema) for parsed in parse(statement, whole=False)}
    if len(found) > 1:
        raise Unsupported("a definition whose tables depend on the server that read its /*! comments */")
    return found.pop()


def _affected(parsed: ast.ParsedStatement, default_schema: str) -> AffectedTables:
    command = parsed.command
    match command:
        case ast.OtherStatement() | ast.ViewStatement():
            return NONE
        case ast.CreateSchemaStatement(schema, replace, _):
            return AffectedTables(schema=schema.text, drops=replace, spans=(schema.span,))
        case ast.AlterSchemaStatement(named, _):
            if named is None:
                return AffectedTables(schema=default_schema)
            return AffectedTables(schema=named.text, spans=(named.span,))
        case ast.DropSchemaStatement(schema):
            return AffectedTables(schema=schema.text, drops=True, spans=(schema.span,))
        case ast.CreateTableStatement(table, _, _, LikeTable(_, other)):
            return _of("CREATE", table, like=other)
        case ast.CreateTableStatement(table, _, _, _) | ast.CreateSequenceStatement(table, _):
            return _of("CREATE", table)
        case ast.AlterTableStatement():
            return _altered(command)
        case ast.AlterSequenceStatement(table):
            return _of("ALTER", table)
        case ast.DropTablesStatement(tables, _, _):
            return _of("DROP", *tables)
        case ast.RenameTablesStatement(pairs, _):
            return _of("RENAME", *(table for pair in pairs for table in pair))
        case ast.TruncateTableStatement(table):
            if parsed.rest is not None:
                parsed.rest.stop()
            return _of("TRUNCATE", table)
        case ast.CreateIndexStatement(table, _) | ast.DropIndexStatement(table, _):
            return _of("INDEX", table)
        case _:
            assert_never(command)


def _altered(command: ast.AlterTableStatement) -> AffectedTables:
    """Return the tables of an ALTER TABLE, including those that its clauses name."""
    renames: list[TableReference] = []
    partners: list[TableReference] = []
    for part in command.parts:
        clause = naming_another_table(part.clauses[0])
        match clause:
            case None:
                pass
            case RenameTo(_, table):
                renames.append(table)
            case ExchangeRows(_, table):
                partners.append(table)
            case _:
                assert_never(clause)
    if len(renames) + len(partners) > 1:
        raise Unsupported("DDL not understood: an ALTER TABLE that names several tables")
    return _of("ALTER", command.table, *renames, partner=next(iter(partners), None))


def _of(
    verb: str, *tables: TableReference, like: TableReference | None = None, partner: TableReference | None = None
) -> AffectedTables:
    named = [*tables, *(table for table in (like, partner) if table is not None)]
    return AffectedTables(
        tables=tuple(table.name for table in tables),
        verb=verb,
        like=None if like is None else like.name,
        partner=None if partner is None else partner.name,
        spans=tuple(table.span for table in named),
    )
