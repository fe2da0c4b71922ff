"""The tables that a statement creates, changes, renames, empties or drops, whatever else it says.

A statement whose tables are not known is `Unsupported`: they are never guessed.
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
    """The tables that a statement is about.

    Args:
        tables: those that it creates, changes, renames, empties or drops, in order.
        verb: CREATE, ALTER, DROP, RENAME, TRUNCATE or INDEX of these tables. ALTER of two tables renames the first to
            the second, RENAME has pairs.
        schema: that it creates, changes or drops; "" when it is not about a schema as a whole.
        drops: whether it drops that schema.
        like: the table that the one it creates is like.
        partner: the table that gives rows to the one it alters, or takes rows from it, which no row event tells.
        places: where in the text it names these: the tables, the other, the schema.
    """

    tables: tuple[TableName, ...] = ()
    verb: str = ""
    schema: str = ""
    drops: bool = False
    like: TableName | None = None
    partner: TableName | None = None
    places: tuple[tuple[int, int], ...] = ()

    @property
    def truncates(self) -> bool:
        """True if it takes all rows away and no more."""
        return self.verb == "TRUNCATE"


NONE = AffectedTables()
"""Of accounts, views, triggers, temporary tables …: no rows that the log has."""


def affected_tables(statement: Statement) -> AffectedTables:
    """The tables that a statement is about.

    Raises:
        Unsupported: they are not known.
    """
    found = {_affected(parsed, statement.schema) for parsed in parse(statement, whole=False)}
    if len(found) > 1:
        raise Unsupported("a definition whose tables depend on the server that read its /*! comments */")
    return found.pop()


def _affected(parsed: ast.ParsedStatement, default_schema: str) -> AffectedTables:
    command = parsed.command
    match command:
        case ast.OtherStatement():
            return NONE
        case ast.CreateSchemaStatement(schema, replace, _):
            return AffectedTables(schema=schema.text, drops=replace, places=(schema.span,))
        case ast.AlterSchemaStatement(named, _):
            if named is None:
                return AffectedTables(schema=default_schema)
            return AffectedTables(schema=named.text, places=(named.span,))
        case ast.DropSchemaStatement(schema):
            return AffectedTables(schema=schema.text, drops=True, places=(schema.span,))
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
    """Clauses that name another table begin behind the table's name, or behind a comma."""
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
        places=tuple(table.span for table in named),
    )
