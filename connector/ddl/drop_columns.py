"""Removes from a definition the columns that a rule drops.

Parts of the text are removed with their commas; the rest stays unchanged. The result is parsed again and must be the
intended one, token for token. A definition that cannot be reduced so is `Unsupported`: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, assert_never

from connector.ddl.affected_tables import affected_tables
from connector.ddl.column_spec import column_spec
from connector.ddl.mariadb import ServerDialect, of_mariadb
from connector.ddl.syntax import ast, clauses
from connector.ddl.syntax.ast_column import (
    After,
    DefinedColumn,
    Expression,
    IndexColumn,
    IndexParts,
    Name,
    NotUnderstood,
    References,
    SourceSpan,
    stop,
)
from connector.ddl.syntax.ast_table import (
    CheckConstraint,
    Constraint,
    ForeignKey,
    Index,
    LikeTable,
    OtherOption,
    Partitioning,
    PrimaryKey,
    TableBody,
    TableCharset,
    TableItem,
)
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.tokens import Lexeme, Token, quoted
from connector.ddl.table_spec import table_spec
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName

Said = tuple[tuple[Lexeme, str], ...]
"""Kinds and texts of tokens, without their positions."""


class ColumnRules(Protocol):
    """The rules for a table's columns."""

    def drops(self, column: str) -> bool:
        """True if the column is dropped."""

    def treats(self, column: str) -> object:
        """Return the treatment of a column; equal for columns that are treated alike."""


@dataclass(frozen=True, slots=True)
class DropContext:
    """The rules and tables that `drop_columns` needs.

    Args:
        rules: returns the rules of a table, the same object for the same rule; None: its columns are unchanged.
        after: returns a table after the statement; None: not known.
    """

    rules: Callable[[TableName], ColumnRules | None]
    after: Callable[[TableName], TableLayout | None]


def drop_columns(statement: Statement, asked: DropContext) -> Statement | None:
    """Return the statement without the dropped columns.

    Returns:
        None if nothing is left of the statement.

    Raises:
        Unsupported: the statement is not understood, or cannot be reduced.
    """
    about = affected_tables(statement)
    if not about.tables or about.truncates:
        return statement
    results = {_Dropping(statement, parsed, asked).text() for parsed in parse(statement)}
    if len(results) > 1:
        raise Unsupported("a definition whose columns depend on the server that read its /*! comments */")
    (sql,) = results
    return statement if sql == statement.sql else None if sql is None else _with_text(statement, sql)


def _with_text(statement: Statement, sql: str) -> Statement:
    return Statement(statement.schema, sql, statement.options)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the text between commas, and its tokens."""

    text: str
    said: Said


class _Dropping:
    """Reduces one reading of a statement."""

    def __init__(self, statement: Statement, parsed: ast.ParsedStatement, asked: DropContext) -> None:
        self._statement = statement
        self._parsed = parsed
        self._asked = asked
        self._dialect = ServerDialect(mariadb=of_mariadb(statement))

    def text(self) -> str | None:
        """Return the reduced text; None if nothing is left."""
        sql, command, rules_of = self._parsed.sql, self._parsed.command, self._asked.rules
        match command:
            case (
                ast.OtherStatement()
                | ast.ViewStatement()
                | ast.CreateSchemaStatement()
                | ast.AlterSchemaStatement()
                | ast.DropSchemaStatement()
            ):
                return sql
            case ast.DropTablesStatement() | ast.TruncateTableStatement() | ast.DropIndexStatement():
                return sql
            case ast.CreateSequenceStatement() | ast.AlterSequenceStatement():
                return sql
            case ast.RenameTablesStatement(pairs, _):
                for old, new in pairs:
                    self._same(rules_of(old.name), rules_of(new.name))
                return sql
            case ast.CreateIndexStatement(table, parts):
                rules = rules_of(table.name)
                return None if rules is not None and self._over_dropped(parts, rules) else sql
            case ast.CreateTableStatement():
                return self._create(command, rules_of(command.table.name))
            case ast.AlterTableStatement():
                return self._alter(command, rules_of(command.table.name))
            case _:
                assert_never(command)

    def _same(self, before: ColumnRules | None, after: ColumnRules | None) -> None:
        if before is not after:
            stop("a table is renamed to a name that has another rule")

    def _create(self, command: ast.CreateTableStatement, rules: ColumnRules | None) -> str:
        parsed, body = self._parsed, command.body
        if isinstance(body, LikeTable):
            if parsed.rest is not None:
                parsed.rest.stop()
            self._same(self._asked.rules(body.table.name), rules)
            return parsed.sql
        if rules is None:
            return parsed.sql
        if isinstance(body, NotUnderstood):
            body.stop()
        kept = [span for item, span in zip(body.items, body.parts, strict=True) if self._keeps(item, rules)]
        if not kept:
            stop("every column is dropped")
        if len(kept) == len(body.items):
            return parsed.sql
        sql = self._joined([self._part(span) for span in kept], body.inside)
        self._check_left(body, sql, rules)
        return sql

    def _check_left(self, body: TableBody, sql: str, rules: ColumnRules) -> None:
        """Check that the remaining columns and the key are unchanged."""
        before = table_spec(body, self._dialect)
        shown = tuple(spec for spec in before.specs if not rules.drops(spec.column.name))
        for parsed in parse(_with_text(self._statement, sql)):
            if isinstance(parsed.command, ast.CreateTableStatement):
                after = table_spec(parsed.command.body, self._dialect)
                if shown and (shown, before.key) == (after.specs, after.key):
                    return
        stop("the dropped columns could not be removed from it")

    def _keeps(self, item: TableItem, rules: ColumnRules) -> bool:
        match item:
            case DefinedColumn(_, name, _, _):
                return not rules.drops(name.text)
            case PrimaryKey() | Index() | ForeignKey() | CheckConstraint():
                return self._constraint_stays(item, rules)
            case NotUnderstood():
                return item.stop()
            case _:
                assert_never(item)

    def _constraint_stays(self, item: Constraint, rules: ColumnRules) -> bool:
        """True unless an index or constraint has a dropped column; stop if that is the key."""
        match item:
            case PrimaryKey(_, columns):
                if any(rules.drops(part.column.text) for part in columns):
                    stop("the key has a dropped column")
                return True
            case Index(_, parts):
                return not self._over_dropped(parts, rules)
            case ForeignKey(_, _, parts, end):
                if isinstance(end, References):
                    return not (self._over_dropped(parts, rules) or self._over_dropped(end.columns, rules))
                return not (self._over_dropped(parts, rules) or self._names_dropped(end.span, rules))
            case CheckConstraint(_, expression):
                return not self._names_dropped(expression.span, rules)
            case _:
                assert_never(item)

    def _over_dropped(self, parts: IndexParts, rules: ColumnRules) -> bool:
        if isinstance(parts, NotUnderstood):
            return self._names_dropped(parts.span, rules)
        for part in parts:
            match part:
                case IndexColumn(column):
                    if rules.drops(column.text):
                        return True
                case Expression(span):
                    if self._names_dropped(span, rules):
                        return True
                case _:
                    assert_never(part)
        return False

    def _names_dropped(self, span: SourceSpan, rules: ColumnRules) -> bool:
        """True if a part has a word or name that is the name of a dropped column."""
        names = (token.text for token in self._parsed.within(span) if token.kind in (Lexeme.WORD, Lexeme.NAME))
        return any(map(rules.drops, names))

    def _alter(self, command: ast.AlterTableStatement, rules: ColumnRules | None) -> str | None:
        new = [clause.table.name for clause in command.clauses if isinstance(clause, clauses.RenameTo)]
        for name in new:
            self._same(rules, self._asked.rules(name))
        if rules is None or not command.parts:
            return self._parsed.sql
        kept = [left for part in command.parts if (left := self._clause(part, command.table.name, rules)) is not None]
        inside = SourceSpan(command.parts[0].span.start, command.parts[-1].span.end)
        return self._joined(kept, inside) if kept else None

    def _clause(self, part: clauses.AlterPart, table: TableName, rules: ColumnRules) -> _Part | None:
        """Return a clause, with those that follow it without a comma, as it is published; None: it is removed."""
        whole, clause = self._part(part.span), part.clauses[0]
        match clause:
            case clauses.AddColumn(_, _, column) | clauses.ModifyColumn(_, _, column):
                if not rules.drops(column.name.text):
                    return self._positioned(part, column, table, rules)
                self._check_alone(part, column)
                return None
            case clauses.AddColumns(span, _, _):
                if self._names_dropped(span, rules):
                    stop("ADD (column, …) with several columns, some of which a rule drops")
                return whole
            case clauses.AddConstraint(_, constraint):
                return whole if self._constraint_stays(constraint, rules) else None
            case clauses.ChangeColumn(_, _, old, column):
                self._alike(old, column.name, rules)
                if not rules.drops(old.text):
                    return self._positioned(part, column, table, rules)
                self._check_alone(part, column)
                return None
            case clauses.RenameColumn(_, _, old, new):
                self._alike(old, new, rules)
                return None if rules.drops(old.text) else whole
            case clauses.AlterColumn(column=name) | clauses.DropColumn(column=name):
                return None if rules.drops(name.text) else whole
            case NotUnderstood():
                return clause.stop()
            case (
                clauses.DropConstraint()
                | clauses.RenameTo()
                | clauses.ConvertCharset()
                | clauses.OrderBy()
                | clauses.PartitionClause()
            ):
                return whole
            case clauses.ExchangeRows() | clauses.NoEffect() | clauses.RenameIndex() | clauses.UnknownClause():
                return whole
            case TableCharset() | OtherOption() | Partitioning():
                return whole
            case _:
                assert_never(clause)

    def _alike(self, old: Name, new: Name, rules: ColumnRules) -> None:
        if rules.treats(old.text) != rules.treats(new.text):
            stop(f"column {old.text} is renamed to {new.text}, which the rule treats differently")

    def _check_alone(self, part: clauses.AlterPart, column: DefinedColumn) -> None:
        """Check that a removed part has only the column's definition."""
        if column_spec(column, "", self._dialect).primary:
            stop("the key has a dropped column")
        if len(part.clauses) > 1:
            stop("another clause follows a dropped column without a comma")

    def _positioned(
        self, part: clauses.AlterPart, column: DefinedColumn, table: TableName, rules: ColumnRules
    ) -> _Part:
        """Return a remaining column's definition; if its position refers to a dropped column, with another position."""
        position, whole = column.position, self._part(part.span)
        if not isinstance(position, After) or not rules.drops(position.column.text):
            return whole
        if self._parsed.within(part.span)[-1].end != position.span.end:
            stop("another clause follows, without a comma, the position AFTER a dropped column")
        if self._positions() > 1:
            stop("several columns have positions, one of them AFTER a dropped column")
        before = self._before(column.name.text, table, rules)
        place = f"AFTER {quoted(before)}" if before else "FIRST"
        text = self._parsed.sql[part.span.start : position.span.start] + place
        said = ((Lexeme.WORD, "AFTER"), (Lexeme.NAME, before)) if before else ((Lexeme.WORD, "FIRST"),)
        return _Part(text, (*whole.said[:-2], *said))

    def _positions(self) -> int:
        """Return the number of columns with positions."""
        words = [token.text.upper() for token in self._parsed.tokens if token.kind is Lexeme.WORD]
        return words.count("AFTER") + words.count("FIRST")

    def _before(self, column: str, table: TableName, rules: ColumnRules) -> str:
        """Return the published column before this one after the statement; "" if this is the first one."""
        after = self._asked.after(table)
        if after is None:
            stop("a position AFTER a dropped column of a table whose columns are not known")
        found = ""
        for other in after.columns:
            if other.name.casefold() == column.casefold():
                return found
            found = found if rules.drops(other.name) else other.name
        return stop(f"column {column} is not in {table}")

    def _part(self, span: SourceSpan) -> _Part:
        return _Part(self._parsed.text(span), _said(self._parsed.within(span)))

    def _joined(self, kept: Sequence[_Part], inside: SourceSpan) -> str:
        """Return the text with only these parts in the list; check that it has exactly their tokens."""
        parsed = self._parsed
        sql = f"{parsed.sql[: inside.start]}{','.join(part.text for part in kept)}{parsed.sql[inside.end :]}"
        expected = [*_said(token for token in parsed.tokens if token.at < inside.start)]
        for number, part in enumerate(kept):
            expected += [(Lexeme.SIGN, ",")] if number else []
            expected += part.said
        expected += _said(token for token in parsed.tokens if token.at >= inside.end)
        if not any(list(_said(again.tokens)) == expected for again in parse(_with_text(self._statement, sql))):
            stop("the dropped columns could not be removed from it")
        return sql


def _said(tokens: Iterable[Token]) -> Said:
    return tuple((token.kind, token.text) for token in tokens)
