"""The syntax tree of a table's definition: columns, keys, constraints and options, in CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, NoReturn

from connector.ddl.column_default import Default
from connector.errors import Unsupported
from connector.log.transaction.layout import TableName


class Span(NamedTuple):
    """A part of the statement's text: `sql[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A part that the grammar does not have, with the message for those who need it."""

    span: Span
    reason: str

    def stop(self) -> NoReturn:
        """Refuse the statement for it."""
        raise Unsupported(self.reason)


def stop(what: str) -> NoReturn:
    """Refuse a statement that is read but whose meaning is not known."""
    raise Unsupported(f"DDL not understood: {what}")


@dataclass(frozen=True, slots=True)
class Name:
    """A column's name where the text has it; `text` without quotes."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table's name where the text has it; `name` with the default schema."""

    span: Span
    name: TableName


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression in its parentheses."""

    span: Span


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """A column that an index, a foreign key or partitions are over."""

    column: Name


IndexPart = IndexColumn | Expression
IndexParts = tuple[IndexPart, ...] | NotUnderstood


@dataclass(frozen=True, slots=True)
class ReferenceAction:
    """`ON event action`; the action "" where it is not known."""

    event: str
    action: str


@dataclass(frozen=True, slots=True)
class References:
    """The other end of a foreign key; `schema` is "" where the text names none."""

    span: Span
    schema: str
    table: str
    columns: IndexParts
    actions: tuple[ReferenceAction, ...]


# A column's definition


@dataclass(frozen=True, slots=True)
class DataType:
    """A type as the statement names it.

    Args:
        span: of the name and what stands in parentheses.
        base: MySQL's own name for it: `int` for INTEGER; of MariaDB's fixed types `binary`.
        sizes: in parentheses; of fixed types theirs.
        labels: of ENUM and SET.
        national: NCHAR, NVARCHAR and the like: in utf8mb3.
        serial: SERIAL, which says more than a type.
        declared: the name in lower case where `base` does not tell it: uuid, inet4, inet6.
    """

    span: Span
    base: str
    sizes: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    national: bool = False
    serial: bool = False
    declared: str = ""


@dataclass(frozen=True, slots=True)
class Nullability:
    """NULL or NOT NULL."""

    span: Span
    null: bool


@dataclass(frozen=True, slots=True)
class AutoIncrement:
    """AUTO_INCREMENT, or SERIAL DEFAULT VALUE, which is NOT NULL, too."""

    span: Span
    serial: bool


@dataclass(frozen=True, slots=True)
class Unsigned:
    """UNSIGNED or ZEROFILL."""

    span: Span


@dataclass(frozen=True, slots=True)
class DefaultClause:
    """DEFAULT; `expression` is what stands in parentheses, also a function's arguments."""

    span: Span
    value: Default
    expression: Expression | None


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """CHARACTER SET, ASCII, UNICODE or BYTE, by the log's name."""

    span: Span
    charset: str


@dataclass(frozen=True, slots=True)
class Collate:
    """COLLATE, as the statement names it."""

    span: Span
    collation: str


@dataclass(frozen=True, slots=True)
class InlinePrimaryKey:
    """[PRIMARY] KEY."""

    span: Span


@dataclass(frozen=True, slots=True)
class Generated:
    """[GENERATED ALWAYS] AS (…), and whether STORED or PERSISTENT follows at once."""

    span: Span
    expression: Expression
    stored: bool


@dataclass(frozen=True, slots=True)
class InlineCheck:
    """[CONSTRAINT name] CHECK (…)."""

    span: Span
    expression: Expression


@dataclass(frozen=True, slots=True)
class InlineReferences:
    """REFERENCES."""

    span: Span
    references: References


@dataclass(frozen=True, slots=True)
class OtherAttribute:
    """An attribute that means nothing to rows: COMMENT, UNIQUE, INVISIBLE, ON UPDATE …"""

    span: Span


Attribute = (
    Nullability
    | AutoIncrement
    | Unsigned
    | DefaultClause
    | CharacterSet
    | Collate
    | InlinePrimaryKey
    | Generated
    | InlineCheck
    | InlineReferences
    | OtherAttribute
)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """What stands behind a column's name."""

    span: Span
    type: DataType
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class First:
    """FIRST."""

    span: Span


@dataclass(frozen=True, slots=True)
class After:
    """AFTER a column."""

    span: Span
    column: Name


@dataclass(frozen=True, slots=True)
class DefinedColumn:
    """A column with its definition, and its position where ALTER TABLE gives one."""

    span: Span
    name: Name
    definition: ColumnDefinition | NotUnderstood
    position: First | After | None = None


# Keys and constraints


@dataclass(frozen=True, slots=True)
class PrimaryKey:
    """PRIMARY KEY (…)."""

    span: Span
    columns: tuple[IndexColumn, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """INDEX, KEY, UNIQUE, FULLTEXT or SPATIAL."""

    span: Span
    parts: IndexParts


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """FOREIGN KEY; `name` is the constraint's, "" without one."""

    span: Span
    name: str
    parts: IndexParts
    references: References | NotUnderstood


@dataclass(frozen=True, slots=True)
class Check:
    """CHECK (…)."""

    span: Span
    expression: Expression | NotUnderstood


Constraint = PrimaryKey | Index | ForeignKey | Check
TableItem = DefinedColumn | PrimaryKey | Index | ForeignKey | Check | NotUnderstood


# What stands behind the items


@dataclass(frozen=True, slots=True)
class TableCharset:
    """The table's own character set or collation; `charset` is "" where the collation does not tell it."""

    span: Span
    charset: str


@dataclass(frozen=True, slots=True)
class OtherOption:
    """A table option that means nothing to rows; `doubt`: why this one may, "" for all others."""

    span: Span
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """PARTITION BY; `over` is what decides where a row lies."""

    span: Span
    over: IndexParts


TableOption = TableCharset | OtherOption | Partitioning | NotUnderstood


@dataclass(frozen=True, slots=True)
class LikeTable:
    """CREATE TABLE … LIKE."""

    span: Span
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

    span: Span
    inside: Span
    items: tuple[TableItem, ...]
    parts: tuple[Span, ...]
    options: tuple[TableOption, ...]


class PartitionEffect(Enum):
    """What a clause about partitions does to rows."""

    NONE = auto()
    ROWS_GONE = auto()
    UNKNOWN = auto()
