"""A definition with ordinary indexes in place of unique ones whose published values may repeat.

UNIQUE is taken out, and CONSTRAINT with it; the index keeps its name, so later statements find it. The rest stays to
the letter. The result is read again: it must have the same definitions, without these. What is not understood stays as
it is: the worst that follows is a unique index on a target, which its applier replaces once values repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from connector.ddl.affected_tables import affected_tables
from connector.ddl.syntax import ast
from connector.ddl.syntax.ast_column import DefinedColumn, IndexColumn, InlineUnique, NotUnderstood, SourceSpan
from connector.ddl.syntax.ast_table import Index
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.tokens import Lexeme, Token
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName

Repeats = Callable[[str], bool]
"""True if rows may be published with equal values of a column that differ on the source."""


def plain_indexes(statement: Statement, repeats: Callable[[TableName], Repeats | None]) -> Statement:
    """The statement as the published rows keep its unique keys.

    Args:
        statement: it, with the source's names.
        repeats: of a table; None: its values are published as they are.
    """
    try:
        about = affected_tables(statement)
        found = repeats(about.tables[0]) if about.tables and not about.truncates else None
        if found is None:
            return statement
        ways = parse(statement)
        edits = {span: text for parsed in ways for span, text in _edits(parsed, found)}
        if not edits:
            return statement
        sql = statement.sql
        for span, text in sorted(edits.items(), reverse=True):
            sql = f"{sql[: span.start]}{text}{sql[span.end :]}"
        result = Statement(statement.schema, sql, statement.options)
        after = parse(result)
        left = [edit for parsed in after for edit in _edits(parsed, found)]
        if left or [_kinds(parsed) for parsed in after] != [_kinds(parsed) for parsed in ways]:
            return statement
    except Unsupported:
        return statement
    return result


def _kinds(parsed: ast.ParsedStatement) -> list[tuple[type, str]]:
    """The definitions of a statement: each one's kind, and a column's or an index's name."""
    named = [(type(item), item.name.text if isinstance(item, DefinedColumn) else item.name if isinstance(item, Index)
              else "") for item in ast.defined_items(parsed.command)]  # fmt: skip
    return [*named, (type(parsed.command), "")]


def _edits(parsed: ast.ParsedStatement, repeats: Repeats) -> Iterator[tuple[SourceSpan, str]]:
    command = parsed.command
    if isinstance(command, ast.CreateIndexStatement) and _repeats(command.index, repeats):
        before = [token for token in parsed.tokens if token.at < command.index.span.start]
        for token in before:
            if _is(token, "UNIQUE"):
                yield SourceSpan(token.at, token.end), ""
    for item in ast.defined_items(command):
        if isinstance(item, Index) and _repeats(item, repeats):
            yield _key(parsed, item)
        if isinstance(item, DefinedColumn) and repeats(item.name.text):
            yield from _inline(item)


def _repeats(index: Index, repeats: Repeats) -> bool:
    """True if it is unique and over a column whose published values may repeat."""
    if not index.unique or isinstance(index.parts, NotUnderstood):
        return False
    return any(isinstance(part, IndexColumn) and repeats(part.column.text) for part in index.parts)


def _inline(column: DefinedColumn) -> Iterator[tuple[SourceSpan, str]]:
    if not isinstance(column.definition, NotUnderstood):
        for attribute in column.definition.attributes:
            if isinstance(attribute, InlineUnique):
                yield attribute.span, ""


def _key(parsed: ast.ParsedStatement, index: Index) -> tuple[SourceSpan, str]:
    """[CONSTRAINT [name]] UNIQUE [KEY | INDEX] becomes KEY, with the constraint's name where the index has no other."""
    tokens = parsed.within(index.span)
    at = next(at for at, token in enumerate(tokens) if _is(token, "UNIQUE"))
    last = tokens[at + 1] if _is(tokens[at + 1], "KEY") or _is(tokens[at + 1], "INDEX") else tokens[at]
    following = tokens[tokens.index(last) + 1]
    name = ""
    if at > 1 and (following.text == "(" or following.text.upper() == "USING"):
        name = f" `{index.name.replace('`', '``')}`"
    return SourceSpan(tokens[0].at, last.end), f"KEY{name}"


def _is(token: Token, word: str) -> bool:
    return token.kind is Lexeme.WORD and token.text.upper() == word
