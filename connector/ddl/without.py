"""A definition without some columns: what is published of a table some of whose columns are not.

Parts of the text are left out as they stand between their commas; the rest stays to the letter. The result is read
again and must be, token for token, what was to be left. What cannot be written so is `Unsupported`: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from connector.ddl.column_spec import column_spec
from connector.ddl.create import definition, index_or_constraint, like
from connector.ddl.mariadb import of_mariadb, pass_patience
from connector.ddl.reader import Reader
from connector.ddl.subjects import subjects
from connector.ddl.tokens import Lexeme, Token, readings
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName

_NO_COLUMN = ("INDEX", "KEY", "FOREIGN", "CHECK", "CONSTRAINT", "PRIMARY", "PARTITION")


class ColumnRules(Protocol):
    """What becomes of a table's columns."""

    def drops(self, column: str) -> bool:
        """Whether it is left out."""

    def treats(self, column: str) -> object:
        """What is done with it: another is treated alike when this is equal."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the reading of a statement wants to know.

    Args:
        rules: of a table; None: all its columns are published as they are. The same object for the same rule.
        after: the table when the statement has been executed; None: it is not known.
    """

    rules: Callable[[TableName], ColumnRules | None]
    after: Callable[[TableName], TableLayout | None]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the text between commas, and its tokens."""

    start: int
    text: str
    tokens: tuple[Token, ...]


def without_columns(statement: Statement, asked: Asked) -> Statement | None:
    """The statement without the columns that are not published.

    Returns:
        None where nothing is left of it.

    Raises:
        Unsupported: it is not understood, or what is left of it cannot be written.
    """
    about = subjects(statement)
    if not about.tables or about.truncates:
        return statement
    sql_mode = statement.options.get("sql_mode", "")
    results = set()
    for tokens in readings(statement.sql, sql_mode):
        reader = Reader(tokens, statement.schema, mariadb=of_mariadb(statement))
        results.add(_Reading(reader, tokens, statement.sql, sql_mode, asked).read(about.tables))
    if len(results) > 1:
        raise Unsupported("a definition whose columns depend on the server that read its /*! comments */")
    (sql,) = results
    return statement if sql == statement.sql else None if sql is None else _with_text(statement, sql)


def _with_text(statement: Statement, sql: str) -> Statement:
    """The statement with another text."""
    return Statement(statement.schema, sql, statement.options)


class _Reading:
    """One reading of one statement."""

    def __init__(self, reader: Reader, tokens: list[Token], sql: str, sql_mode: str, asked: Asked) -> None:
        self._reader = reader
        self._tokens = tokens
        self._sql = sql
        self._sql_mode = sql_mode
        self._asked = asked

    def read(self, tables: tuple[TableName, ...]) -> str | None:
        reader, rules = self._reader, [self._asked.rules(table) for table in tables]
        while not (verb := reader.accept_any("CREATE", "ALTER", "RENAME", "DROP")):
            reader.take()
        if verb == "DROP":
            return self._sql
        if verb == "RENAME":
            self._same(rules[::2], rules[1::2])
            return self._sql
        while not reader.accept_any("TABLES", "TABLE"):
            if reader.accept("SEQUENCE"):
                return self._sql
            if reader.accept("INDEX"):
                return self._sql if rules[0] is None else self._index(rules[0])
            reader.take()
        reader.accept("IF", "NOT", "EXISTS")
        reader.accept("IF", "EXISTS")
        name = reader.table()
        if verb == "CREATE":
            return self._create(rules[0])
        self._same(rules[:1], rules[1:] or rules[:1])
        pass_patience(reader)
        return self._sql if rules[0] is None else self._alter(name, rules[0])

    def _same(self, before: list[ColumnRules | None], after: list[ColumnRules | None]) -> None:
        if any(old is not new for old, new in zip(before, after, strict=True)):
            self._reader.stop("a table gets the name of one that has another rule")

    def _index(self, rules: ColumnRules) -> str | None:
        """CREATE INDEX: not over a column that is left out."""
        tokens = self._tokens[self._reader.mark :]
        part = _Part(0, "", tuple(tokens))
        return self._sql if self._index_stays(part, (), rules) else None

    def _create(self, rules: ColumnRules | None) -> str:
        reader = self._reader
        start = reader.mark
        if (other := like(reader)) is not None:
            self._same([self._asked.rules(other)], [rules])
            return self._sql
        if rules is None:
            return self._sql
        if not reader.peek("("):
            reader.stop("CREATE TABLE without columns")
        opening = reader.take()
        parts = self._parts(opening.at + 1)
        kept = [part for part in parts if self._item_stays(part, rules)]
        if not kept:
            reader.stop("every column is dropped")
        if len(kept) == len(parts):
            return self._sql
        sql, tokens = self._joined(opening.at + 1, kept, reader.token.at)
        reader.back(start)
        before = definition(reader, self._sql_mode)
        left = Reader(tokens, "", mariadb=reader.mariadb)
        left.back(start)
        after = definition(left, self._sql_mode)
        shown = tuple(spec for spec in before.specs if not rules.drops(spec.column.name))
        if not shown or (shown, before.key) != (after.specs, after.key):
            reader.stop("columns could not be left out")
        return sql

    def _item_stays(self, part: _Part, rules: ColumnRules) -> bool:
        reader = self._of(part)
        key = index_or_constraint(reader)
        if key is None:
            return not rules.drops(reader.name())
        return self._index_stays(part, key, rules)

    def _index_stays(self, part: _Part, key: tuple[str, ...], rules: ColumnRules) -> bool:
        """An index or constraint over a column that is left out is left out, too; the key never is."""
        if any(map(rules.drops, key)):
            self._reader.stop("the key is over a column that is dropped")
        inner = next((at for at, token in enumerate(part.tokens) if token.text == "("), len(part.tokens))
        names = (token.text for token in part.tokens[inner:] if token.kind in (Lexeme.WORD, Lexeme.NAME))
        return bool(key) or not any(map(rules.drops, names))

    def _alter(self, name: TableName, rules: ColumnRules) -> str | None:
        reader = self._reader
        if reader.at_end:
            return self._sql
        start = reader.token.at
        kept = []
        for part in self._parts(start):
            changed = self._clause(part, name, rules)
            if changed is not None:
                kept.append(changed)
        return self._joined(start, kept, reader.token.at)[0] if kept else None

    def _clause(self, part: _Part, name: TableName, rules: ColumnRules) -> _Part | None:
        """A clause as it is published; None: not at all."""
        reader = self._of(part)
        if reader.accept("ADD"):
            key = index_or_constraint(reader)
            if key is not None:
                return part if self._index_stays(part, key, rules) else None
            reader.accept("COLUMN")
            reader.accept("IF", "NOT", "EXISTS")
            if reader.peek("("):
                return self._several(part, rules)
            if reader.peek("PARTITION"):
                return part
            column = reader.name()
            if not rules.drops(column):
                return self._placed(part, column, name, rules)
            self._pass_definition(reader, column)
            return None
        verb = reader.accept_any("DROP", "MODIFY", "CHANGE", "ALTER", "RENAME")
        if not verb or any(reader.peek(word) for word in _NO_COLUMN):
            return part
        if verb == "RENAME" and not reader.peek("COLUMN"):
            return part
        reader.accept("COLUMN")
        reader.accept("IF", "EXISTS")
        column = reader.name()
        gone = rules.drops(column)
        if verb in ("DROP", "ALTER"):
            return None if gone else part
        new = column
        if verb == "CHANGE" or reader.accept("TO"):
            new = reader.name()
        if rules.treats(column) != rules.treats(new):
            self._reader.stop(f"column {column} gets the name {new}, for which the rule says something else,")
        if verb == "RENAME":
            return None if gone else part
        if not gone:
            return self._placed(part, new, name, rules)
        self._pass_definition(reader, new)
        return None

    def _several(self, part: _Part, rules: ColumnRules) -> _Part | None:
        """ADD (column …, column …)."""
        names = (token.text for token in part.tokens if token.kind in (Lexeme.WORD, Lexeme.NAME))
        if any(map(rules.drops, names)):
            self._reader.stop("several columns are added in parentheses, some of them dropped")
        return part

    def _pass_definition(self, reader: Reader, column: str) -> None:
        """A column's definition that is left out is nothing more than that."""
        if column_spec(reader, column, "", self._sql_mode).primary:
            reader.stop("the key is over a column that is dropped")
        if reader.accept("AFTER"):
            reader.name()
        reader.accept("FIRST")
        reader.expect_end()

    def _placed(self, part: _Part, column: str, name: TableName, rules: ColumnRules) -> _Part:
        """A column's definition that stays; its place may be behind one that does not."""
        word, place = part.tokens[-2:]
        if word.kind is not Lexeme.WORD or word.text.upper() != "AFTER" or not rules.drops(place.text):
            return part
        if sum(token.kind is Lexeme.WORD and token.text.upper() in ("AFTER", "FIRST") for token in self._tokens) > 1:
            self._reader.stop("several columns get places, one behind a column that is dropped,")
        before = self._before(column, name, rules)
        quoted = before.replace("`", "``")
        told = [Token(Lexeme.WORD, "AFTER", 0), Token(Lexeme.NAME, before, 0)] if before else []
        text = part.text[: word.at - part.start] + (f"AFTER `{quoted}`" if before else "FIRST")
        return _Part(part.start, text, (*part.tokens[:-2], *(told or [Token(Lexeme.WORD, "FIRST", 0)])))

    def _before(self, column: str, name: TableName, rules: ColumnRules) -> str:
        """The column that is published and stands before this one when all is done; "" where it is the first."""
        after = self._asked.after(name)
        if after is None:
            return self._reader.stop("the place of a column is behind one that is dropped, and where that is")
        found = ""
        for other in after.columns:
            if other.name.casefold() == column.casefold():
                return found
            found = found if rules.drops(other.name) else other.name
        return self._reader.stop(f"column {column} is not in {name}")

    def _parts(self, start: int) -> list[_Part]:
        """What stands between commas, up to the closing parenthesis or the end, where the reader is then."""
        reader, parts = self._reader, []
        while True:
            begin = reader.mark
            reader.skip_clause()
            tokens = tuple(self._tokens[begin : reader.mark])
            parts.append(_Part(start, self._sql[start : reader.token.at], tokens))
            start = reader.token.at + 1
            if not reader.accept(","):
                return parts

    def _of(self, part: _Part) -> Reader:
        """A reader of the part alone, which names no table."""
        end = Token(Lexeme.END, "", 0)
        return Reader((*part.tokens, end, end), "", mariadb=self._reader.mariadb)

    def _joined(self, start: int, kept: list[_Part], end: int) -> tuple[str, list[Token]]:
        """The text with these parts alone, which must say just what is wanted; and its tokens."""
        sql = f"{self._sql[:start]}{','.join(part.text for part in kept)}{self._sql[end:]}"
        wanted = [token for token in self._tokens if token.at < start]
        for number, part in enumerate(kept):
            wanted += [Token(Lexeme.SIGN, ",", 0)] if number else []
            wanted += part.tokens
        wanted += [token for token in self._tokens if token.at >= end]
        for tokens in readings(sql, self._sql_mode):
            if [(token.kind, token.text) for token in tokens] == [(token.kind, token.text) for token in wanted]:
                return sql, tokens
        return self._reader.stop("columns could not be left out")
