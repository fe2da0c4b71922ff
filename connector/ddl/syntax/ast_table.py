"""The syntax tree of a table's definition: its keys, constraints and options, and CREATE TABLE's body."""

from __future__ import annotations

from dataclasses import dataclass

from connector.ddl.syntax.ast_column import (
    DefinedColumn,
    Expression,
    IndexColumn,
    IndexParts,
    NotUnderstood,
    References,
    SourceSpan,
    TableReference,
)


@dataclass(frozen=True, slots=True)
class PrimaryKey:
    """PRIMARY KEY (…)."""

    span: SourceSpan
    columns: tuple[IndexColumn, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """INDEX, KEY, UNIQUE, FULLTEXT, SPATIAL or VECTOR.

    Args:
        span: the text of the index.
        parts: the columns and expressions of the index.
        name: the name in the statement; "" if the server chooses it.
        unique: true for a unique index.
        kind: FULLTEXT, SPATIAL or VECTOR; "" for an ordinary one.
        optional: IF NOT EXISTS.
    """

    span: SourceSpan
    parts: IndexParts
    name: str = ""
    unique: bool = False
    kind: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """FOREIGN KEY.

    Args:
        span: the text of the constraint.
        name: the constraint's name; "" if it has none.
        parts: the columns.
        references: the other end.
        index: the name of the index that the server may create for it; "" if the server chooses it.
    """

    span: SourceSpan
    name: str
    parts: IndexParts
    references: References | NotUnderstood
    index: str = ""


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """CHECK (…)."""

    span: SourceSpan
    expression: Expression | NotUnderstood


Constraint = PrimaryKey | Index | ForeignKey | CheckConstraint
TableItem = DefinedColumn | PrimaryKey | Index | ForeignKey | CheckConstraint | NotUnderstood


# The options after the items


@dataclass(frozen=True, slots=True)
class TableCharset:
    """The table's own character set or collation; `charset` is "" if the collation does not determine it."""

    span: SourceSpan
    charset: str


@dataclass(frozen=True, slots=True)
class OtherOption:
    """A table option without effect on rows.

    Args:
        span: the option and its value.
        doubt: the reason why this one may have an effect, else "".
        comment: the text of COMMENT; None for other options.
    """

    span: SourceSpan
    doubt: str = ""
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Partitioning:
    """PARTITION BY; `over` are the columns or expressions that determine a row's partition."""

    span: SourceSpan
    over: IndexParts


TableOption = TableCharset | OtherOption | Partitioning | NotUnderstood


@dataclass(frozen=True, slots=True)
class LikeTable:
    """CREATE TABLE … LIKE."""

    span: SourceSpan
    table: TableReference


@dataclass(frozen=True, slots=True)
class TableBody:
    """`(column or constraint, …)` and the options after it.

    Args:
        span: the whole body.
        inside: the text between the parentheses.
        items: the columns and constraints, in order.
        parts: the text between the commas around each item.
        options: the options after the closing parenthesis.
    """

    span: SourceSpan
    inside: SourceSpan
    items: tuple[TableItem, ...]
    parts: tuple[SourceSpan, ...]
    options: tuple[TableOption, ...]
