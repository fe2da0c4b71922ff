"""The syntax tree of a column's definition, and the nodes that all parts of a statement use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from connector.ddl.syntax.tokens import Lexeme
from connector.errors import Unsupported
from connector.log.transaction.layout import TableName


class SourceSpan(NamedTuple):
    """A part of the statement's text: `sql[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A part that the grammar does not know, with the message for visitors that need it."""

    span: SourceSpan
    reason: str

    def stop(self) -> NoReturn:
        """Refuse the statement because of this part."""
        raise Unsupported(self.reason)


def stop(what: str) -> NoReturn:
    """Refuse a statement that was parsed, but whose effect is not known."""
    raise Unsupported(f"DDL not understood: {what}")


@dataclass(frozen=True, slots=True)
class Name:
    """A column's name with its span; `text` has no quotes."""

    span: SourceSpan
    text: str


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table's name with its span; `name` includes the default schema."""

    span: SourceSpan
    name: TableName


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression in its parentheses."""

    span: SourceSpan


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """A column of an index, a foreign key or a partitioning.

    Args:
        column: the column's name.
        length: the prefix length in characters or bytes; 0 for the whole column.
        descending: true for descending order.
    """

    column: Name
    length: int = 0
    descending: bool = False


IndexPart = IndexColumn | Expression
IndexParts = tuple[IndexPart, ...] | NotUnderstood


@dataclass(frozen=True, slots=True)
class ReferenceAction:
    """`ON event action`; the action is "" if it is not known."""

    event: str
    action: str


@dataclass(frozen=True, slots=True)
class References:
    """The other end of a foreign key; `schema` is "" if the text names none."""

    span: SourceSpan
    schema: str
    table: str
    columns: IndexParts
    actions: tuple[ReferenceAction, ...]


# A column's default


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant default.

    Args:
        kind: the token's kind: string, number, hex or bits.
        text: the token's text; a string without quotes and escapes.
        negative: true if a minus precedes it.
        charset: the character set of the introducer, as in _latin1'a'; "" for the session's.
        type: DATE, TIME or TIMESTAMP if the word precedes the string, else "".
        parts: number of adjacent strings.
        computed: true if it is in parentheses.
    """

    kind: Lexeme
    text: str
    negative: bool = False
    charset: str = ""
    type: str = ""
    parts: int = 1
    computed: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """DEFAULT CURRENT_TIMESTAMP, or CURRENT_DATE.

    Args:
        digits: number of fractional digits.
        date: true for CURRENT_DATE.
    """

    digits: int = 0
    date: bool = False


@dataclass(frozen=True, slots=True)
class Computed:
    """A default that the source computes."""


@dataclass(frozen=True, slots=True)
class Null:
    """DEFAULT NULL."""


Default = Literal | Now | Computed | Null


# A column's definition


@dataclass(frozen=True, slots=True)
class DataType:
    """A type as the statement names it.

    Args:
        span: the name and its parentheses.
        base: MySQL's own name of the type: `int` for INTEGER; `binary` for MariaDB's fixed types.
        sizes: the sizes in parentheses, or those of a fixed type.
        labels: the labels of ENUM and SET.
        national: true for NCHAR, NVARCHAR and the like, which are utf8mb3.
        serial: true for SERIAL, which implies further attributes.
        declared: the name in lower case if `base` differs: uuid, inet4, inet6.
    """

    span: SourceSpan
    base: str
    sizes: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    national: bool = False
    serial: bool = False
    declared: str = ""


@dataclass(frozen=True, slots=True)
class Nullability:
    """NULL or NOT NULL."""

    span: SourceSpan
    null: bool


@dataclass(frozen=True, slots=True)
class AutoIncrement:
    """AUTO_INCREMENT, or SERIAL DEFAULT VALUE, which is NOT NULL, too."""

    span: SourceSpan
    serial: bool


@dataclass(frozen=True, slots=True)
class Unsigned:
    """UNSIGNED or ZEROFILL."""

    span: SourceSpan


@dataclass(frozen=True, slots=True)
class DefaultClause:
    """DEFAULT; `expression` is the text in parentheses, also a function's arguments."""

    span: SourceSpan
    value: Default
    expression: Expression | None


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """CHARACTER SET, ASCII, UNICODE or BYTE, with the log's name of the character set."""

    span: SourceSpan
    charset: str


@dataclass(frozen=True, slots=True)
class Collate:
    """COLLATE, with the statement's name of the collation."""

    span: SourceSpan
    collation: str


@dataclass(frozen=True, slots=True)
class InlinePrimaryKey:
    """[PRIMARY] KEY."""

    span: SourceSpan


@dataclass(frozen=True, slots=True)
class Generated:
    """[GENERATED ALWAYS] AS (…); `stored`: STORED or PERSISTENT follows directly."""

    span: SourceSpan
    expression: Expression
    stored: bool


@dataclass(frozen=True, slots=True)
class InlineCheck:
    """[CONSTRAINT name] CHECK (…)."""

    span: SourceSpan
    expression: Expression


@dataclass(frozen=True, slots=True)
class InlineReferences:
    """REFERENCES."""

    span: SourceSpan
    references: References


@dataclass(frozen=True, slots=True)
class InlineUnique:
    """UNIQUE [KEY]."""

    span: SourceSpan


@dataclass(frozen=True, slots=True)
class OtherAttribute:
    """An attribute without effect on rows: COMMENT, INVISIBLE, ON UPDATE …; `comment`: its text, None for others."""

    span: SourceSpan
    comment: str | None = None


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
    | InlineUnique
    | OtherAttribute
)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column's type and attributes."""

    span: SourceSpan
    type: DataType
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class First:
    """FIRST."""

    span: SourceSpan


@dataclass(frozen=True, slots=True)
class After:
    """AFTER a column."""

    span: SourceSpan
    column: Name


@dataclass(frozen=True, slots=True)
class DefinedColumn:
    """A column with its definition, and its position if ALTER TABLE has one."""

    span: SourceSpan
    name: Name
    definition: ColumnDefinition | NotUnderstood
    position: First | After | None = None
