"""Makes columns of a definition nullable if a rule publishes NULL for them, although the source has NOT NULL.

NOT NULL becomes NULL, and so does a zero date as the default; the rest stays unchanged. The result is parsed again and
must be the intended one, token for token. A part that is not understood stays unchanged: the row layouts in the log
also show readers that a column may be NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from connector.ddl.affected_tables import affected_tables
from connector.ddl.mariadb import dialect_of
from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import (
    DefaultClause,
    DefinedColumn,
    InlinePrimaryKey,
    Literal,
    NotUnderstood,
    Nullability,
    SourceSpan,
)
from connector.ddl.syntax.ast_table import PrimaryKey
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.tokens import Lexeme, Token, readings
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName

DATES: Final = ("date", "datetime", "timestamp")
Said = tuple[Lexeme, str]
Edits = dict[SourceSpan, str]
"""Replacements for parts of the text, by span; an empty span is an insertion."""


class NullRules(Protocol):
    """The rules for a table's columns."""

    def nulls(self, column: str, base: str) -> bool:
        """Return True if the rule puts NULL into a column for other values; `base` is the name of its type."""


def allow_nulls(
    statement: Statement,
    rules: Callable[[TableName], NullRules | None],
    known: Callable[[TableName], TableLayout | None],
) -> Statement:
    """Return the statement with the nullability of the published rows.

    Args:
        statement: the statement, with the source's names.
        rules: returns the rules of a table; None: all its rows are published with the source's NULLs.
        known: returns a table after the statement; None: not known.

    Raises:
        Unsupported: the statement is not understood, or its text cannot be replaced.
    """
    about = affected_tables(statement)
    found = rules(about.tables[0]) if about.tables and not about.truncates else None
    if found is None:
        return statement
    layout = known(about.tables[-1])
    implicit = dialect_of(statement).implicit
    ways = parse(statement)
    edits = {
        span: text
        for parsed in ways
        for column in _columns(parsed, layout)
        for span, text in _edits(column, found, alters=_alters(parsed), implicit=implicit)
    }
    if not edits:
        return statement
    sql = statement.sql
    for span, text in sorted(edits.items(), reverse=True):
        sql = f"{sql[: span.start]}{text}{sql[span.end :]}"
    sql_mode = statement.options.get("sql_mode", "")
    if [_said(tokens) for tokens in readings(sql, sql_mode)] != [_meant(way.tokens, edits) for way in ways]:
        raise Unsupported("NOT NULL of columns that a rule publishes NULL for could not be replaced")
    return Statement(statement.schema, sql, statement.options)


def _alters(parsed: ast.ParsedStatement) -> bool:
    return isinstance(parsed.command, ast.AlterTableStatement)


def _columns(parsed: ast.ParsedStatement, layout: TableLayout | None) -> Iterator[DefinedColumn]:
    """Yield the columns that a statement defines, without those of the key, which are never NULL."""
    items = list(ast.defined_items(parsed.command))
    key = {part.column.text.lower() for item in items if isinstance(item, PrimaryKey) for part in item.columns}
    key |= {layout.columns[index].name.lower() for index in layout.key} if layout is not None else set()
    for item in items:
        if isinstance(item, DefinedColumn) and item.name.text.lower() not in key:
            yield item


def _edits(
    column: DefinedColumn, rules: NullRules, *, alters: bool, implicit: bool
) -> Iterator[tuple[SourceSpan, str]]:
    definition = column.definition
    if isinstance(definition, NotUnderstood) or not rules.nulls(column.name.text, definition.type.base):
        return
    attributes = definition.attributes
    if any(isinstance(one, InlinePrimaryKey) for one in attributes):
        return
    said = [one for one in attributes if isinstance(one, Nullability)]
    defaulted = [one for one in attributes if isinstance(one, DefaultClause)]
    if implicit and definition.type.base == "timestamp" and not any(one.null for one in said):
        if alters and not defaulted:
            return  # existing rows get a time that only the source knows; NULL would hide that
        if not said:
            yield SourceSpan(definition.span.end, definition.span.end), " NULL"
    for one in said:
        if not one.null:
            yield one.span, "NULL"
    for default in defaulted:
        if isinstance(default.value, Literal) and definition.type.base in DATES and _is_zero(default.value):
            yield default.span, "DEFAULT NULL"


def _is_zero(literal: Literal) -> bool:
    """True for a zero date in any of its forms, with any time."""
    return literal.text.startswith("0000-00-00") or not literal.text.strip("0-: .T")


def _said(tokens: Sequence[Token]) -> list[Said]:
    return [(token.kind, token.text) for token in tokens]


def _meant(tokens: Sequence[Token], edits: Edits) -> list[Said]:
    """Return the intended tokens after the edits."""
    found: list[Said] = []
    done: set[SourceSpan] = set()
    for token in tokens:
        for span in sorted(edits):
            if span not in done and span.start <= token.at and (span.start == span.end or token.at < span.end):
                done.add(span)
                found += [(Lexeme.WORD, word) for word in edits[span].split()]
        if not any(span.start <= token.at < span.end for span in edits):
            found.append((token.kind, token.text))
    return found
