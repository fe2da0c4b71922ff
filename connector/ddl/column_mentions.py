"""The places in a definition that name a column of its table: one visit of the syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, assert_never

from connector.ddl.column_spec import column_spec
from connector.ddl.expression_words import is_column
from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax import ast, clauses
from connector.ddl.syntax.ast_column import (
    After,
    Attribute,
    AutoIncrement,
    CharacterSet,
    Collate,
    DefaultClause,
    DefinedColumn,
    Expression,
    Generated,
    IndexColumn,
    IndexParts,
    InlineCheck,
    InlinePrimaryKey,
    InlineReferences,
    Name,
    NotUnderstood,
    Nullability,
    OtherAttribute,
    References,
    Unsigned,
    stop,
)
from connector.ddl.syntax.ast_table import (
    Check,
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
from connector.ddl.syntax.tokens import Lexeme, Token
from connector.ddl.table_spec import table_spec
from connector.log.transaction.layout import TableLayout, TableName


class ColumnNames(Protocol):
    """The names of a table's columns."""

    def drops(self, column: str) -> bool:
        """True if it is left out."""

    @property
    def names(self) -> Mapping[str, str]:
        """Columns, in lower case, and the names under which they are published, where these are others."""


def touches(token: Token, rules: ColumnNames) -> bool:
    """True if a token may mean a column that has another name, or one that has the name of another."""
    if token.kind not in (Lexeme.WORD, Lexeme.NAME):
        return False
    name = token.text.lower()
    return name in rules.names or any(name == new.lower() for new in rules.names.values())


class ColumnMentions:
    """One reading of one statement: `places` in the text that name a column which has another name.

    Args:
        parsed: the reading.
        table: it is about.
        dialect: the statement's.
        rules: of the table.
        fold: makes names of tables equal that the server takes for the same.
    """

    def __init__(
        self,
        parsed: ast.ParsedStatement,
        table: TableName,
        dialect: ServerDialect,
        rules: ColumnNames,
        fold: Callable[[str], str],
    ) -> None:
        self.tokens = parsed.tokens
        self.places: dict[tuple[int, int], str] = {}
        self._parsed = parsed
        self._table = table
        self._dialect = dialect
        self._rules = rules
        self._fold = fold
        self._names = rules.names
        self._mentioned: set[str] = set()
        self._conditional: set[str] = set()

    def read(self, after: TableLayout | None) -> None:
        """Go through the statement.

        Args:
            after: the table when it has been executed, where that is known.

        Raises:
            Unsupported: it is not understood, two columns would have one name, or what is a column cannot be told.
        """
        command = self._parsed.command
        match command:
            case (
                ast.OtherStatement()
                | ast.CreateSchemaStatement()
                | ast.AlterSchemaStatement()
                | ast.DropSchemaStatement()
            ):
                pass
            case (
                ast.DropTablesStatement()
                | ast.RenameTablesStatement()
                | ast.TruncateTableStatement()
                | ast.DropIndexStatement()
            ):
                pass
            case ast.CreateSequenceStatement() | ast.AlterSequenceStatement():
                pass
            case ast.CreateIndexStatement(_, parts):
                self._parts(parts)
            case ast.CreateTableStatement(_, _, _, body):
                self._create(body)
            case ast.AlterTableStatement():
                for clause in command.clauses:
                    self._clause(clause)
                self._check(None if after is None else [column.name for column in after.columns])
            case _:
                assert_never(command)

    def _check(self, columns: list[str] | None) -> None:
        """No two columns are published under one name; and a clause with a condition means the same one either way."""
        if columns is not None:
            published = (self._called(column) for column in columns if not self._rules.drops(column))
            if name := twice(published):
                stop(f"two columns would be published under the name {name}")
        there = None if columns is None else {column.lower() for column in columns}
        for old, new in self._names.items():
            if new.lower() in self._names or self._rules.drops(new):
                continue
            for one, other in ((old, new.lower()), (new.lower(), old)):
                unsure = there is None or other in there | self._mentioned
                if one in self._conditional and unsure:
                    stop(f"a condition about column {one}, where {other} may be there, too")

    def _called(self, column: str) -> str:
        return self._names.get(column.lower(), column)

    def _own(self, column: Name, *, optional: bool = False) -> None:
        """A column of the table is named."""
        name = column.text.lower()
        self._mentioned.add(name)
        if optional:
            self._conditional.add(name)
        if name in self._names:
            self.places[column.span] = self._names[name]

    def _create(self, body: TableBody | LikeTable | NotUnderstood) -> None:
        columns = [spec.column.name for spec in table_spec(body, self._dialect).specs]
        if isinstance(body, TableBody):
            for item in body.items:
                self._item(item)
            for option in body.options:
                if isinstance(option, Partitioning):
                    self._parts(option.over)
        self._check(columns)

    def _item(self, item: TableItem) -> None:
        match item:
            case DefinedColumn():
                self._defined(item)
            case PrimaryKey(_, columns):
                self._parts(columns)
            case Index(_, parts):
                self._parts(parts)
            case ForeignKey(_, _, parts, end):
                self._parts(parts)
                if isinstance(end, NotUnderstood):
                    end.stop()
                self._referenced(end)
            case Check(_, expression):
                if isinstance(expression, NotUnderstood):
                    expression.stop()
                self._expression(expression)
            case NotUnderstood():
                item.stop()
            case _:
                assert_never(item)

    def _parts(self, parts: IndexParts) -> None:
        """The columns of an index, a foreign key or a partitioning."""
        if isinstance(parts, NotUnderstood):
            parts.stop()
        for part in parts:
            match part:
                case IndexColumn(column):
                    self._own(column)
                case Expression():
                    self._expression(part)
                case _:
                    assert_never(part)

    def _referenced(self, end: References) -> None:
        """The columns behind REFERENCES are of this table where it refers to itself."""
        fold, schema = self._fold, end.schema or self._table.schema
        if (fold(schema), fold(end.table)) == (fold(self._table.schema), fold(self._table.table)):
            self._parts(end.columns)

    def _defined(self, column: DefinedColumn, *, optional: bool = False) -> None:
        """A column with its definition and its place."""
        definition = column.definition
        if isinstance(definition, NotUnderstood):
            definition.stop()
        column_spec(column, "", self._dialect)
        self._own(column.name, optional=optional)
        for attribute in definition.attributes:
            self._attribute(attribute)
        if isinstance(column.position, After):
            self._own(column.position.column)

    def _attribute(self, attribute: Attribute) -> None:
        match attribute:
            case Generated(_, expression, _) | InlineCheck(_, expression):
                self._expression(expression)
            case DefaultClause(_, _, expression):
                if expression is not None:
                    self._expression(expression)
            case InlineReferences(_, end):
                self._referenced(end)
            case Nullability() | AutoIncrement() | Unsigned() | CharacterSet() | Collate():
                pass
            case InlinePrimaryKey() | OtherAttribute():
                pass
            case _:
                assert_never(attribute)

    def _clause(self, clause: clauses.Clause) -> None:
        match clause:
            case clauses.AddColumn(_, optional, column) | clauses.ModifyColumn(_, optional, column):
                self._defined(column, optional=optional)
            case clauses.AddColumns(_, optional, items):
                if optional:
                    stop("a condition about several columns")
                for item in items:
                    self._item(item)
            case clauses.AddConstraint(_, constraint):
                self._item(constraint)
            case clauses.ChangeColumn(_, optional, old, column):
                self._own(old, optional=optional)
                self._defined(column, optional=optional)
            case clauses.RenameColumn(_, optional, old, new):
                self._own(old, optional=optional)
                self._own(new, optional=optional)
            case clauses.AlterColumn(_, optional, name, _, expression):
                self._own(name, optional=optional)
                if expression is not None:
                    self._expression(expression)
            case clauses.DropColumn(_, optional, name):
                self._own(name, optional=optional)
            case NotUnderstood():
                clause.stop()
            case clauses.OrderBy(_, columns):
                for name in columns:
                    self._own(name)
            case Partitioning(_, over):
                self._parts(over)
            case clauses.UnknownClause():
                self._unknown(clause)
            case clauses.DropConstraint() | clauses.RenameTo() | clauses.ConvertCharset() | clauses.PartitionClause():
                pass
            case OtherOption(_, doubt):
                if doubt:
                    stop(doubt)
            case clauses.ExchangeRows() | clauses.NoEffect() | TableCharset():
                pass
            case _:
                assert_never(clause)

    def _unknown(self, clause: clauses.UnknownClause) -> None:
        """A clause that names no column, as far as we know: at least none of those that have other names."""
        for token in self._parsed.within(clause.span):
            if token.kind in (Lexeme.WORD, Lexeme.NAME) and token.text.lower() in self._names:
                stop(f"whether {token.text} is a column in a clause that is not known")

    def _expression(self, expression: Expression) -> None:
        """Names in an expression may be columns."""
        places = self._parsed.places(expression.span)
        for at in places[1:-1]:
            token = self.tokens[at]
            name = token.text.lower()
            dropped = self._rules.drops(name)
            if not touches(token, self._rules) or not (dropped or name in self._names):
                continue
            column = is_column(self.tokens, at)
            if column is None or (column and dropped):  # what is dropped is another column's name now
                stop(f"whether {name} is that column in an expression")
            if column:
                self.places[token.at, token.end] = self._names[name]


def twice(names: Iterable[str]) -> str:
    """The first name of a column that is there again; "" where none is."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return ""
