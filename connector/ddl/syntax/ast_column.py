"""The syntax tree of a column's definition, and the nodes that stand in every part of a statement."""

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
    """A part that the grammar does not have, with the message for those who need it."""

    span: SourceSpan
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

    span: SourceSpan
    text: str


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table's name where the text has it; `name` with the default schema."""

    span: SourceSpan
    name: TableName


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression in its parentheses."""

    span: SourceSpan


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
        kind: a token's: string, number, hex or bits.
        text: the token's; of a string without quotes and escapes.
        negative: whether a minus stands before it.
        charset: the character set that it is said to be in: _latin1'a'; "" for that of the session.
        type: DATE, TIME or TIMESTAMP of a string with such a word before it, else "".
        parts: of how many adjacent strings it is made.
        computed: whether it stands in parentheses.
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
        places: how many digits its fraction has.
        date: whether it is the day alone.
    """

    places: int = 0
    date: bool = False


@dataclass(frozen=True, slots=True)
class Computed:
    """A default, or a column, that the source computes."""


@dataclass(frozen=True, slots=True)
class Null:
    """DEFAULT NULL."""


Default = Literal | Now | Computed | Null


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
    """DEFAULT; `expression` is what stands in parentheses, also a function's arguments."""

    span: SourceSpan
    value: Default
    expression: Expression | None


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """CHARACTER SET, ASCII, UNICODE or BYTE, by the log's name."""

    span: SourceSpan
    charset: str


@dataclass(frozen=True, slots=True)
class Collate:
    """COLLATE, as the statement names it."""

    span: SourceSpan
    collation: str


@dataclass(frozen=True, slots=True)
class InlinePrimaryKey:
    """[PRIMARY] KEY."""

    span: SourceSpan


@dataclass(frozen=True, slots=True)
class Generated:
    """[GENERATED ALWAYS] AS (…), and whether STORED or PERSISTENT follows at once."""

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
class OtherAttribute:
    """An attribute that means nothing to rows: COMMENT, UNIQUE, INVISIBLE, ON UPDATE …"""

    span: SourceSpan


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
    """A column with its definition, and its position where ALTER TABLE gives one."""

    span: SourceSpan
    name: Name
    definition: ColumnDefinition | NotUnderstood
    position: First | After | None = None
