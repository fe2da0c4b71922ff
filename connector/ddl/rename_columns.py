"""Replaces the names of columns in a definition by their published names.

A rule uses the name that a column has in the source: after CHANGE and RENAME COLUMN the rule for the new name applies.
Only the names of the table's own columns are replaced, each as a whole and quoted. Names of indexes, constraints and
partitions stay, and so do another table's columns after REFERENCES. The result is parsed again and must be the intended
one, token for token. An ambiguous name (is `day` in an expression a column or a unit?) is `Unsupported`: nothing is
guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from connector.ddl.affected_tables import affected_tables
from connector.ddl.column_mentions import ColumnMentions, ColumnNames, touches
from connector.ddl.mariadb import ServerDialect, of_mariadb
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.tokens import Lexeme, Token, quoted, readings
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName


@dataclass(frozen=True, slots=True)
class RenameContext:
    """The names and tables that `rename_columns` needs.

    Args:
        names: returns the column names of a table; None: they are unchanged.
        after: returns a table after the statement; None: not known.
        fold: normalises names of tables as the server compares them.
    """

    names: Callable[[TableName], ColumnNames | None]
    after: Callable[[TableName], TableLayout | None]
    fold: Callable[[str], str]


def rename_columns(statement: Statement, context: RenameContext) -> Statement:
    """Return the statement with the published names of columns.

    Args:
        statement: the statement, without the dropped columns.
        context: the names. If the statement names two tables, `drop_columns` has checked that they have the same rule.

    Raises:
        Unsupported: the statement is not understood, two columns would have the same name, or a name is ambiguous.
    """
    about = affected_tables(statement)
    rules = context.names(about.tables[0]) if about.tables and not about.truncates and about.like is None else None
    sql_mode = statement.options.get("sql_mode", "")
    ways = readings(statement.sql, sql_mode)
    if rules is None or not any(touches(token, rules) for tokens in ways for token in tokens):
        return statement
    after = context.after(about.tables[-1])
    dialect = ServerDialect(mariadb=of_mariadb(statement))
    found = []
    for parsed in parse(statement):
        found.append(ColumnMentions(parsed, about.tables[0], dialect, rules, context.fold))
        found[-1].read(after)
    spans = {span: name for way in found for span, name in way.spans.items()}
    sql = statement.sql
    for (start, end), name in sorted(spans.items(), reverse=True):
        sql = f"{sql[:start]}{quoted(name)}{sql[end:]}"
    if [_said(tokens) for tokens in readings(sql, sql_mode)] != [_said(way.tokens, way.spans) for way in found]:
        raise Unsupported("the names of columns could not be replaced")
    return statement if sql == statement.sql else Statement(statement.schema, sql, statement.options)


def _said(tokens: Iterable[Token], spans: Mapping[tuple[int, int], str] | None = None) -> list[tuple[Lexeme, str]]:
    """Return the kinds and texts of tokens, with the given names at the given spans."""
    replaced = spans or {}
    return [
        (Lexeme.NAME, replaced[token.at, token.end]) if (token.at, token.end) in replaced else (token.kind, token.text)
        for token in tokens
    ]
