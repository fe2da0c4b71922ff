"""Finds where a definition names columns of its table, in one visit of the syntax tree."""

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
    InlineUnique,
    Name,
    NotUnderstood,
    Nullability,
    OtherAttribute,
    References,
    Unsigned,
    stop,
)
from connector.ddl.syntax.ast_table import (
    CheckConstraint,
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
        """True if the column is dropped."""

    @property
    def names(self) -> Mapping[str, str]:
        """Renamed columns, in lower case → their published names."""


def touches(token: Token, rules: ColumnNames) -> bool:
    """True if a token may name a renamed column, or has the published name of one."""
    if token.kind not in (Lexeme.WORD, Lexeme.NAME):
        return False
    name = token.text.lower()
    return name in rules.names or any(name == new.lower() for new in rules.names.values())


class ColumnMentions:
    """Finds the renamed columns in one reading of a statement; `spans` has their start and end in the text.

    Args:
        parsed: the syntax tree of the reading.
        table: the table that the statement defines or alters.
        dialect: the dialect of the statement.
        rules: the column names of the table.
        fold: normalises names of tables as the server compares them.
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
        self.spans: dict[tuple[int, int], str] = {}
        self._parsed = parsed
        self._table = table
        self._dialect = dialect
        self._rules = rules
        self._fold = fold
        self._names = rules.names
        self._mentioned: set[str] = set()
        self._conditional: set[str] = set()

    def read(self, after: TableLayout | None) -> None:
        """Visit the statement.

        Args:
            after: the table after the statement; None: not known.

        Raises:
            Unsupported: it is not understood, two columns would have the same name, or a name is ambiguous.
        """
        command = self._parsed.command
        match command:
            case (
                ast.OtherStatement()
                | ast.ViewStatement()
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
        """Check that published names are distinct, and that IF [NOT] EXISTS tests the same column by either name."""
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
                    stop(f"IF [NOT] EXISTS for column {one} is ambiguous: column {other} may exist, too")

    def _called(self, column: str) -> str:
        return self._names.get(column.lower(), column)

    def _own(self, column: Name, *, optional: bool = False) -> None:
        """Note a column of the table."""
        name = column.text.lower()
        self._mentioned.add(name)
        if optional:
            self._conditional.add(name)
        if name in self._names:
            self.spans[column.span] = self._names[name]

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
            case CheckConstraint(_, expression):
                if isinstance(expression, NotUnderstood):
                    expression.stop()
                self._expression(expression)
            case NotUnderstood():
                item.stop()
            case _:
                assert_never(item)

    def _parts(self, parts: IndexParts) -> None:
        """Note the columns of an index, a foreign key or a partitioning."""
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
        """Note the columns after REFERENCES if the table refers to itself."""
        fold, schema = self._fold, end.schema or self._table.schema
        if (fold(schema), fold(end.table)) == (fold(self._table.schema), fold(self._table.table)):
            self._parts(end.columns)

    def _defined(self, column: DefinedColumn, *, optional: bool = False) -> None:
        """Note the columns in a definition: its own name, attributes and position."""
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
            case InlinePrimaryKey() | InlineUnique() | OtherAttribute():
                pass
            case _:
                assert_never(attribute)

    def _clause(self, clause: clauses.Clause) -> None:
        match clause:
            case clauses.AddColumn(_, optional, column) | clauses.ModifyColumn(_, optional, column):
                self._defined(column, optional=optional)
            case clauses.AddColumns(_, optional, items):
                if optional:
                    stop("IF [NOT] EXISTS for several columns")
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
            case OtherOption(doubt=doubt):
                if doubt:
                    stop(doubt)
            case clauses.ExchangeRows() | clauses.NoEffect() | clauses.RenameIndex() | TableCharset():
                pass
            case _:
                assert_never(clause)

    def _unknown(self, clause: clauses.UnknownClause) -> None:
        """Check that a clause that is not understood has no word that may be a renamed column."""
        for token in self._parsed.within(clause.span):
            if token.kind in (Lexeme.WORD, Lexeme.NAME) and token.text.lower() in self._names:
                stop(f"{token.text} may be a column in an unknown clause")

    def _expression(self, expression: Expression) -> None:
        """Note the columns in an expression."""
        indexes = self._parsed.token_indexes(expression.span)
        for at in indexes[1:-1]:
            token = self.tokens[at]
            name = token.text.lower()
            dropped = self._rules.drops(name)
            if not touches(token, self._rules) or not (dropped or name in self._names):
                continue
            column = is_column(self.tokens, at)
            if column is None or (column and dropped):  # a dropped column's name is another column's published name
                stop(f"{name} in an expression may be that column or a keyword")
            if column:
                self.spans[token.at, token.end] = self._names[name]


def twice(names: Iterable[str]) -> str:
    """Return the first name that occurs twice; "" if none does."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return ""
