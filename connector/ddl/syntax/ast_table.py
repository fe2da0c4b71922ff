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
    """INDEX, KEY, UNIQUE, FULLTEXT or SPATIAL."""

    span: SourceSpan
    parts: IndexParts


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """FOREIGN KEY; `name` is the constraint's, "" without one."""

    span: SourceSpan
    name: str
    parts: IndexParts
    references: References | NotUnderstood


@dataclass(frozen=True, slots=True)
class Check:
    """CHECK (…)."""

    span: SourceSpan
    expression: Expression | NotUnderstood


Constraint = PrimaryKey | Index | ForeignKey | Check
TableItem = DefinedColumn | PrimaryKey | Index | ForeignKey | Check | NotUnderstood


# What stands behind the items


@dataclass(frozen=True, slots=True)
class TableCharset:
    """The table's own character set or collation; `charset` is "" where the collation does not tell it."""

    span: SourceSpan
    charset: str


@dataclass(frozen=True, slots=True)
class OtherOption:
    """A table option that means nothing to rows; `doubt`: why this one may, "" for all others."""

    span: SourceSpan
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """PARTITION BY; `over` is what decides where a row lies."""

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
    """`(column or constraint, …)` and the options behind it.

    Args:
        span: all of it.
        inside: between its parentheses.
        items: in order.
        parts: what stands between the commas around each item.
        options: behind the parenthesis.
    """

    span: SourceSpan
    inside: SourceSpan
    items: tuple[TableItem, ...]
    parts: tuple[SourceSpan, ...]
    options: tuple[TableOption, ...]
