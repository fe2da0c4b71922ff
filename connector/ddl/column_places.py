"""Where a definition names its table's columns: one reading of one statement, gone through clause by clause.

The grammar is that of `create`, `alter` and `column_spec`, which are asked whether a part is understood; here its names
are looked at. A clause that is not known stops where it has a word that is such a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from connector.ddl.column_spec import column_spec
from connector.ddl.create import definition, index_or_constraint
from connector.ddl.expression_words import is_column
from connector.ddl.mariadb import pass_patience
from connector.ddl.reader import Reader
from connector.ddl.table_options import partitioning, table_option
from connector.ddl.tokens import Lexeme, Token
from connector.errors import Unsupported
from connector.log.transaction.layout import TableLayout, TableName

_KEYS: Final = ("PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "INDEX", "KEY")
_NO_COLUMN: Final = ("INDEX", "KEY", "FOREIGN", "CHECK", "CONSTRAINT", "PRIMARY")


class ColumnNames(Protocol):
    """What a table's columns are called."""

    def drops(self, column: str) -> bool:
        """Whether it is left out."""

    @property
    def names(self) -> Mapping[str, str]:
        """Columns, in lower case, and the names under which they are published, where these are others."""


def touches(token: Token, rules: ColumnNames) -> bool:
    """Whether a token may mean a column that has another name, or one that has the name of another."""
    if token.kind not in (Lexeme.WORD, Lexeme.NAME):
        return False
    name = token.text.lower()
    return name in rules.names or any(name == new.lower() for new in rules.names.values())


class ColumnPlaces:
    """One reading of one statement: `places` in the text that name a column which has another name.

    Args:
        reader: of `tokens`.
        tokens: all of the statement.
        sql_mode: the session's.
        rules: of the table.
        fold: makes names of tables equal that the server takes for the same.
    """

    def __init__(
        self, reader: Reader, tokens: list[Token], sql_mode: str, rules: ColumnNames, fold: Callable[[str], str]
    ) -> None:
        self.tokens = tokens
        self.places: dict[tuple[int, int], str] = {}
        self._reader = reader
        self._sql_mode = sql_mode
        self._rules = rules
        self._fold = fold
        self._names = rules.names
        self._table = TableName("", "")
        self._mentioned: set[str] = set()
        self._conditional: set[str] = set()

    def read(self, table: TableName, after: TableLayout | None) -> None:
        """Go through the statement.

        Args:
            table: it is about.
            after: the table when it has been executed, where that is known.

        Raises:
            Unsupported: it is not understood, two columns would have one name, or what is a column cannot be told.
        """
        reader, self._table = self._reader, table
        while not (verb := reader.accept_any("CREATE", "ALTER", "RENAME", "DROP")):
            reader.take()
        if verb in ("RENAME", "DROP"):
            return
        while not reader.accept_any("TABLES", "TABLE"):
            if reader.accept("SEQUENCE"):
                return
            if reader.accept("INDEX"):
                self._created_index()
                return
            reader.take()
        reader.accept("IF", "NOT", "EXISTS")
        reader.accept("IF", "EXISTS")
        reader.table()
        if verb == "CREATE":
            self._create()
            return
        pass_patience(reader)
        self._alter()
        self._check(None if after is None else [column.name for column in after.columns])

    def _check(self, columns: list[str] | None) -> None:
        """No two columns are published under one name; and a clause with a condition means the same one either way."""
        if columns is not None:
            published = (self._called(column) for column in columns if not self._rules.drops(column))
            if name := twice(published):
                self._reader.stop(f"two columns would be published under the name {name},")
        there = None if columns is None else {column.lower() for column in columns}
        for old, new in self._names.items():
            if new.lower() in self._names or self._rules.drops(new):
                continue
            for one, other in ((old, new.lower()), (new.lower(), old)):
                unsure = there is None or other in there | self._mentioned
                if one in self._conditional and unsure:
                    self._reader.stop(f"a condition about column {one}, where {other} may be there, too,")

    def _called(self, column: str) -> str:
        return self._names.get(column.lower(), column)

    def _own(self, *, optional: bool = False) -> None:
        """Pass the name of a column of the table."""
        token, name = self._reader.token, self._reader.name().lower()
        self._mentioned.add(name)
        if optional:
            self._conditional.add(name)
        if name in self._names:
            self.places[token.at, token.end] = self._names[name]

    def _create(self) -> None:
        reader = self._reader
        start = reader.mark
        columns = [spec.column.name for spec in definition(reader, self._sql_mode).specs]
        reader.back(start)
        self._items()
        while not reader.at_end:
            if not self._partitioning() and table_option(reader) is None:
                reader.take()
        self._check(columns)

    def _items(self) -> None:
        """Pass `(column or index, …)`."""
        reader = self._reader
        reader.expect("(")
        while True:
            if not self._index():
                self._own()
                self._attributes()
            if not reader.accept(","):
                break
        reader.expect(")")

    def _index(self) -> bool:
        """Pass an index or constraint, if one comes next."""
        reader = self._reader
        start = reader.mark
        if index_or_constraint(reader) is None:
            return False
        reader.back(start)
        while not (kind := reader.accept_any(*_KEYS, "FOREIGN", "CHECK")):
            reader.take()
        if kind == "CHECK":
            self._expression()
        else:
            while not reader.peek("("):
                reader.take()
            self._parts()
            if kind == "FOREIGN":
                reader.expect("REFERENCES")
                self._referenced()
        self._rest()
        return True

    def _created_index(self) -> None:
        """CREATE INDEX, behind this word."""
        reader = self._reader
        while not reader.accept("ON"):
            reader.take()
        reader.table()
        pass_patience(reader)
        self._parts()
        while not reader.at_end:
            reader.take()

    def _parts(self) -> None:
        """Pass `(column or expression, …)`: what an index, a foreign key or partitions are over."""
        reader = self._reader
        reader.expect("(")
        while not reader.accept(")"):
            if reader.peek("("):
                self._expression()
            else:
                self._own()
                reader.numbers()
            reader.accept_any("ASC", "DESC")
            if not reader.accept(",") and not reader.peek(")"):
                reader.stop("a part of an index that is not known")

    def _referenced(self) -> None:
        """Pass what REFERENCES names: its columns are ours where the table refers to itself."""
        reader, fold = self._reader, self._fold
        name = TableName(self._table.schema, reader.name())
        if reader.accept("."):
            name = TableName(name.table, reader.name())
        if not reader.peek("("):
            return
        if tuple(map(fold, name)) == tuple(map(fold, self._table)):
            self._parts()
        else:
            reader.skip_parentheses()

    def _attributes(self) -> None:
        """Pass a column's definition, behind its name."""
        reader = self._reader
        start = reader.mark
        column_spec(reader, "", "", self._sql_mode)
        end = reader.mark
        reader.back(start)
        while reader.mark < end:
            if reader.accept_any("AS", "CHECK"):
                self._expression()
            elif reader.accept("REFERENCES"):
                self._referenced()
            elif reader.accept("DEFAULT"):
                self._default()
            elif reader.peek("("):
                reader.skip_parentheses()  # a size, labels
            else:
                reader.take()

    def _default(self) -> None:
        """Pass what follows DEFAULT, where that is an expression. MariaDB's functions stand without parentheses."""
        reader = self._reader
        if reader.token.kind is Lexeme.WORD and reader.peek(reader.token.text.upper(), "("):
            reader.take()
        if reader.peek("("):
            self._expression()

    def _alter(self) -> None:
        reader = self._reader
        while not reader.at_end:
            start = reader.mark
            if not self._partitioning():
                self._clause()
            if not reader.accept(",") and reader.mark == start:
                reader.stop("an ALTER TABLE clause that is not known")

    def _clause(self) -> None:
        reader = self._reader
        word = reader.token.text.upper()
        if reader.peek(word, "PARTITION") and not reader.peek(word, "PARTITION", "BY"):  # and partitions alone
            while not reader.at_end:
                reader.take()
        elif reader.accept("ADD"):
            self._add()
        elif reader.accept("CHANGE"):
            optional = self._column()
            self._own(optional=optional)
            self._own(optional=optional)
            self._attributes()
            self._place()
        elif reader.accept("MODIFY"):
            self._own(optional=self._column())
            self._attributes()
            self._place()
        elif verb := reader.accept_any("DROP", "ALTER"):
            if any(reader.peek(word) for word in _NO_COLUMN):
                self._rest()
                return
            self._own(optional=self._column())
            if verb == "ALTER" and reader.accept("SET", "DEFAULT"):
                self._default()
            self._rest()
        elif reader.accept("RENAME", "COLUMN"):
            optional = reader.accept("IF", "EXISTS")
            self._own(optional=optional)
            reader.expect("TO")
            self._own(optional=optional)
        elif reader.accept("RENAME"):
            self._rest()
        elif reader.accept("ORDER", "BY"):
            self._own()
            reader.accept_any("ASC", "DESC")
            while reader.accept(","):
                self._own()
                reader.accept_any("ASC", "DESC")
        elif table_option(reader) is None:
            self._other()

    def _column(self) -> bool:
        """Pass what may stand before a column's name; whether there is a condition."""
        self._reader.accept("COLUMN")
        return self._reader.accept("IF", "EXISTS")

    def _add(self) -> None:
        reader = self._reader
        if self._index():
            return
        reader.accept("COLUMN")
        optional = reader.accept("IF", "NOT", "EXISTS")
        if reader.peek("("):
            if optional:
                reader.stop("a condition about several columns")
            self._items()
            return
        self._own(optional=optional)
        self._attributes()
        self._place()

    def _place(self) -> None:
        if self._reader.accept("AFTER"):
            self._own()
        else:
            self._reader.accept("FIRST")

    def _partitioning(self) -> bool:
        """Pass PARTITION BY …, if it comes next."""
        reader = self._reader
        start = reader.mark
        if not partitioning(reader):
            return False
        end = reader.mark
        reader.back(start)
        while reader.mark < end:
            if reader.accept("KEY"):
                if reader.accept("ALGORITHM", "="):
                    reader.take()
                self._parts()
            elif reader.accept("COLUMNS"):
                self._parts()
            elif reader.accept_any("HASH", "RANGE", "LIST"):
                if reader.peek("("):
                    self._expression()
            elif reader.peek("("):
                reader.skip_parentheses()  # the partitions
            else:
                reader.take()
        return True

    def _rest(self) -> None:
        """Pass what is left of a clause, in which no column is named."""
        reader = self._reader
        while not (reader.at_end or reader.peek(",") or reader.peek(")") or reader.peek("PARTITION", "BY")):
            if reader.peek("("):
                reader.skip_parentheses()
            else:
                reader.take()

    def _other(self) -> None:
        """Pass a clause that names no column, as far as we know: at least none of those that have other names."""
        start = self._reader.mark
        self._rest()
        for token in self.tokens[start : self._reader.mark]:
            if token.kind in (Lexeme.WORD, Lexeme.NAME) and token.text.lower() in self._names:
                self._reader.back(start)
                self._reader.stop(f"whether {token.text} is a column in a clause that is not known,")

    def _expression(self) -> None:
        """Pass `( … )`, in which names may be columns."""
        reader = self._reader
        start = reader.mark
        reader.skip_parentheses()
        for at in range(start + 1, reader.mark - 1):
            name = self.tokens[at].text.lower()
            dropped = self._rules.drops(name)
            if not touches(self.tokens[at], self._rules) or not (dropped or name in self._names):
                continue
            column = is_column(self.tokens, at)
            if column is None or (column and dropped):  # what is dropped is another column's name now
                raise Unsupported(f"DDL not understood: whether {name} is that column in an expression")
            if column:
                self.places[self.tokens[at].at, self.tokens[at].end] = self._names[name]


def twice(names: Iterable[str]) -> str:
    """The first name of a column that is there again; "" where none is."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return ""
