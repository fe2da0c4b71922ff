"""Parses a column's definition in CREATE TABLE and ALTER TABLE (MySQL's manual, "CREATE TABLE")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from connector.ddl.syntax.ast_column import (
    Attribute,
    AutoIncrement,
    CharacterSet,
    Collate,
    ColumnDefinition,
    DefaultClause,
    Generated,
    InlineCheck,
    InlinePrimaryKey,
    InlineReferences,
    InlineUnique,
    Nullability,
    OtherAttribute,
    Unsigned,
)
from connector.ddl.syntax.parse_default import read_default
from connector.ddl.syntax.parse_parts import comment_text, parenthesized, references
from connector.ddl.syntax.parse_type import data_type
from connector.ddl.syntax.reader import TokenReader
from connector.ddl.syntax.tokens import Lexeme
from connector.ddl.syntax.type_names import charset_name

_ENDS: Final = (",", ")", "FIRST", "AFTER")


def column_definition(reader: TokenReader) -> ColumnDefinition:
    """Parse the text after a column's name, up to FIRST, AFTER, a comma, a parenthesis or the end.

    Raises:
        Unsupported: a type or attribute is not known.
    """
    if reader.modes & {"ORACLE", "MAXDB"}:
        reader.stop("a column under sql_mode ORACLE or MAXDB, where types have other meanings,")
    start = reader.start
    kind = data_type(reader)
    attributes: list[Attribute] = []
    while not (reader.at_end or any(map(reader.peek, _ENDS))):
        attributes.append(_attribute(reader))
    return ColumnDefinition(reader.since(start), kind, tuple(attributes))


def _attribute(reader: TokenReader) -> Attribute:
    start = reader.start
    for words, read in _ATTRIBUTES:
        if reader.accept(*words):
            return read(reader, start)
    return reader.stop("unknown column attribute")


def _default(reader: TokenReader, start: int) -> Attribute:
    mark = reader.mark
    if reader.token.kind is Lexeme.WORD and reader.peek(reader.token.text.upper(), "("):
        reader.take()  # a function: MariaDB allows it without parentheses
    expression = parenthesized(reader) if reader.peek("(") else None
    reader.back(mark)
    value = read_default(reader)
    return DefaultClause(reader.since(start), value, expression)


def _on_update(reader: TokenReader, start: int) -> Attribute:
    reader.take()
    if reader.peek("("):
        reader.skip_parentheses()
    return OtherAttribute(reader.since(start))


def _charset(reader: TokenReader, start: int) -> Attribute:
    charset = charset_name(_word_or_string(reader))
    return CharacterSet(reader.since(start), charset)


def _named_charset(charset: str) -> Callable[[TokenReader, int], Attribute]:
    return lambda reader, start: CharacterSet(reader.since(start), charset)


def _collate(reader: TokenReader, start: int) -> Attribute:
    collation = _word_or_string(reader)
    return Collate(reader.since(start), collation)


def _primary(reader: TokenReader, start: int) -> Attribute:
    reader.accept("KEY")
    return InlinePrimaryKey(reader.since(start))


def _generated(reader: TokenReader, start: int) -> Attribute:
    expression = parenthesized(reader)
    stored = reader.accept_any("STORED", "PERSISTENT") != ""
    return Generated(reader.since(start), expression, stored)


def _constraint(reader: TokenReader, start: int) -> Attribute:
    if not reader.peek("CHECK"):
        reader.name()
    reader.expect("CHECK")
    return _check(reader, start)


def _check(reader: TokenReader, start: int) -> Attribute:
    expression = parenthesized(reader)
    return InlineCheck(reader.since(start), expression)


def _references(reader: TokenReader, start: int) -> Attribute:
    found = references(reader)
    return InlineReferences(reader.since(start), found)


def _string(reader: TokenReader, start: int) -> Attribute:
    reader.accept("=")
    reader.string()
    return OtherAttribute(reader.since(start))


def _comment(reader: TokenReader, start: int) -> Attribute:
    comment = comment_text(reader)
    return OtherAttribute(reader.since(start), comment)


def _any_value(reader: TokenReader, start: int) -> Attribute:
    reader.take()
    return OtherAttribute(reader.since(start))


def _optional_value(reader: TokenReader, start: int) -> Attribute:
    if reader.accept("="):
        reader.take()
    return OtherAttribute(reader.since(start))


def _nothing(reader: TokenReader, start: int) -> Attribute:
    return OtherAttribute(reader.since(start))


def _unique(reader: TokenReader, start: int) -> Attribute:
    reader.accept("KEY")
    return InlineUnique(reader.since(start))


_ATTRIBUTES: Final[tuple[tuple[tuple[str, ...], Callable[[TokenReader, int], Attribute]], ...]] = (
    (("NOT", "NULL"), lambda reader, start: Nullability(reader.since(start), null=False)),
    (("NULL",), lambda reader, start: Nullability(reader.since(start), null=True)),
    (("SERIAL", "DEFAULT", "VALUE"), lambda reader, start: AutoIncrement(reader.since(start), serial=True)),
    (("AUTO_INCREMENT",), lambda reader, start: AutoIncrement(reader.since(start), serial=False)),
    *(((word,), lambda reader, start: Unsigned(reader.since(start))) for word in ("UNSIGNED", "ZEROFILL")),
    (("DEFAULT",), _default),
    (("ON", "UPDATE"), _on_update),
    *((words, _charset) for words in (("CHARACTER", "SET"), ("CHARSET",), ("CHAR", "SET"))),
    (("COLLATE",), _collate),
    (("ASCII",), _named_charset("latin1")),
    (("UNICODE",), _named_charset("ucs2")),
    (("BYTE",), _named_charset("binary")),
    (("PRIMARY",), _primary),
    (("UNIQUE",), _unique),
    (("KEY",), lambda reader, start: InlinePrimaryKey(reader.since(start))),
    (("GENERATED", "ALWAYS", "AS"), _generated),
    (("AS",), _generated),
    (("CONSTRAINT",), _constraint),
    (("CHECK",), _check),
    (("REFERENCES",), _references),
    (("COMMENT",), _comment),
    *(((word,), _string) for word in ("ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE")),
    *(((word,), _any_value) for word in ("COLUMN_FORMAT", "STORAGE", "SRID")),
    (("COMPRESSED",), _optional_value),  # MariaDB's
    (("REF_SYSTEM_ID", "="), _any_value),  # of a geometry, MariaDB's
    (("WITHOUT", "SYSTEM", "VERSIONING"), _nothing),
    (("NOT", "ENFORCED"), _nothing),
    *(
        ((word,), _nothing)
        for word in ("SIGNED", "VISIBLE", "INVISIBLE", "STORED", "VIRTUAL", "PERSISTENT", "BINARY", "ENFORCED")
    ),
)


def _word_or_string(reader: TokenReader) -> str:
    reader.accept("=")
    return reader.string() if reader.token.kind is Lexeme.STRING else reader.name()
