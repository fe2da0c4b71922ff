"""The grammar of one column's definition in CREATE TABLE and ALTER TABLE (MySQL's manual, "CREATE TABLE")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from connector.ddl.syntax.ast_column import (
    Attribute,
    AutoIncrement,
    CharacterSet,
    Collate,
    ColumnDefinition,
    DataType,
    DefaultClause,
    Expression,
    Generated,
    IndexColumn,
    IndexPart,
    IndexParts,
    InlineCheck,
    InlinePrimaryKey,
    InlineReferences,
    NotUnderstood,
    Nullability,
    OtherAttribute,
    ReferenceAction,
    References,
    Unsigned,
)
from connector.ddl.syntax.parse_default import read_default
from connector.ddl.syntax.reader import Reader
from connector.ddl.syntax.tokens import Lexeme
from connector.ddl.syntax.type_names import BLOBS, FLOATS, INTEGERS, TEXTS, charset_name
from connector.errors import Unsupported

# Names that mean the same type. Several words first.
_ALIASES: Final = {
    ("DOUBLE", "PRECISION"): "double",
    ("NATIONAL", "CHARACTER", "VARYING"): "nvarchar",
    ("NATIONAL", "CHAR", "VARYING"): "nvarchar",
    ("NATIONAL", "VARCHARACTER"): "nvarchar",
    ("NATIONAL", "VARCHAR"): "nvarchar",
    ("NATIONAL", "CHARACTER"): "nchar",
    ("NATIONAL", "CHAR"): "nchar",
    ("NCHAR", "VARCHARACTER"): "nvarchar",
    ("NCHAR", "VARYING"): "nvarchar",
    ("NCHAR", "VARCHAR"): "nvarchar",
    ("CHARACTER", "VARYING"): "varchar",
    ("CHAR", "VARYING"): "varchar",
    ("CHAR", "BYTE"): "binary",
    ("LONG", "VARCHARACTER"): "mediumtext",
    ("LONG", "VARCHAR"): "mediumtext",
    ("LONG", "VARBINARY"): "mediumblob",
    ("LONG", "CHAR", "VARYING"): "mediumtext",
    ("LONG",): "mediumtext",
    ("INTEGER",): "int",
    ("INT1",): "tinyint",
    ("INT2",): "smallint",
    ("INT3",): "mediumint",
    ("MIDDLEINT",): "mediumint",
    ("INT4",): "int",
    ("INT8",): "bigint",
    ("DEC",): "decimal",
    ("NUMERIC",): "decimal",
    ("FIXED",): "decimal",
    ("FLOAT4",): "float",
    ("FLOAT8",): "double",
    ("CHARACTER",): "char",
    ("NCHAR",): "nchar",
    ("NVARCHAR",): "nvarchar",
    ("VARCHARACTER",): "varchar",
}
_GEOMETRIES: Final = (
    *("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"),
    *("GEOMETRYCOLLECTION", "GEOMCOLLECTION"),
)
_PLAIN: Final = (
    *("BIT", "YEAR", "DATE", "TIME", "DATETIME", "TIMESTAMP", "CHAR", "VARCHAR", "BINARY", "VARBINARY"),
    *("ENUM", "SET", "JSON", "VECTOR", "DECIMAL"),
)
# MariaDB's types that its log holds as BINARY, and their size.
_FIXED: Final = {"UUID": 16, "INET6": 16, "INET4": 4}
_ENDS: Final = (",", ")", "FIRST", "AFTER")
_ACTIONS: Final = (("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT"), ("RESTRICT",), ("NO", "ACTION"))


def column_definition(reader: Reader) -> ColumnDefinition:
    """Read what follows a column's name, up to FIRST, AFTER, a comma, a parenthesis or the end.

    Raises:
        Unsupported: a type or attribute that is not known.
    """
    if reader.modes & {"ORACLE", "MAXDB"}:
        reader.stop("a column under sql_mode ORACLE or MAXDB, where types have other meanings,")
    start = reader.start
    kind = _type(reader)
    attributes: list[Attribute] = []
    while not (reader.at_end or any(map(reader.peek, _ENDS))):
        attributes.append(_attribute(reader))
    return ColumnDefinition(reader.since(start), kind, tuple(attributes))


def _type(reader: Reader) -> DataType:
    start, word = reader.start, reader.token.text.upper()
    if reader.accept("SERIAL"):
        return DataType(reader.since(start), "bigint", serial=True)
    base = next((alias for words, alias in _ALIASES.items() if reader.accept(*words)), "")
    if base in ("mediumtext", "mediumblob"):
        return DataType(reader.since(start), base)
    if not base and reader.accept("REAL"):
        base = "float" if reader.modes & {"REAL_AS_FLOAT", "ANSI"} else "double"
    if not base and reader.accept_any("BOOLEAN", "BOOL"):
        return DataType(reader.since(start), "tinyint")
    if not base and reader.accept_any(*_GEOMETRIES):
        return DataType(reader.since(start), "geometry")
    if not base and (fixed := reader.accept_any(*_FIXED)):
        return DataType(reader.since(start), "binary", (_FIXED[fixed],), declared=word.lower())
    if not base:
        known = [*_PLAIN, *INTEGERS, *FLOATS, *TEXTS, *BLOBS]
        base = reader.accept_any(*(name.upper() for name in known)).lower()
    if not base:
        reader.stop("a type that is not known")
    if base in ("enum", "set"):
        labels = tuple(label.rstrip(" ") for label in reader.strings())
        return DataType(reader.since(start), base, labels=labels)
    national = base.startswith("n")
    sizes = reader.numbers()
    return DataType(reader.since(start), base.removeprefix("n"), sizes, national=national)


def _attribute(reader: Reader) -> Attribute:
    start = reader.start
    for words, read in _ATTRIBUTES:
        if reader.accept(*words):
            return read(reader, start)
    return reader.stop("a column attribute that is not known")


def _default(reader: Reader, start: int) -> Attribute:
    mark = reader.mark
    if reader.token.kind is Lexeme.WORD and reader.peek(reader.token.text.upper(), "("):
        reader.take()  # a function: MariaDB's need no parentheses around them
    expression = parenthesized(reader) if reader.peek("(") else None
    reader.back(mark)
    value = read_default(reader)
    return DefaultClause(reader.since(start), value, expression)


def _on_update(reader: Reader, start: int) -> Attribute:
    reader.take()
    if reader.peek("("):
        reader.skip_parentheses()
    return OtherAttribute(reader.since(start))


def _charset(reader: Reader, start: int) -> Attribute:
    charset = charset_name(_word_or_string(reader))
    return CharacterSet(reader.since(start), charset)


def _named_charset(charset: str) -> Callable[[Reader, int], Attribute]:
    return lambda reader, start: CharacterSet(reader.since(start), charset)


def _collate(reader: Reader, start: int) -> Attribute:
    collation = _word_or_string(reader)
    return Collate(reader.since(start), collation)


def _primary(reader: Reader, start: int) -> Attribute:
    reader.accept("KEY")
    return InlinePrimaryKey(reader.since(start))


def _generated(reader: Reader, start: int) -> Attribute:
    expression = parenthesized(reader)
    stored = reader.accept_any("STORED", "PERSISTENT") != ""
    return Generated(reader.since(start), expression, stored)


def _constraint(reader: Reader, start: int) -> Attribute:
    if not reader.peek("CHECK"):
        reader.name()
    reader.expect("CHECK")
    return _check(reader, start)


def _check(reader: Reader, start: int) -> Attribute:
    expression = parenthesized(reader)
    return InlineCheck(reader.since(start), expression)


def _references(reader: Reader, start: int) -> Attribute:
    found = references(reader)
    return InlineReferences(reader.since(start), found)


def _string(reader: Reader, start: int) -> Attribute:
    reader.accept("=")
    reader.string()
    return OtherAttribute(reader.since(start))


def _any_value(reader: Reader, start: int) -> Attribute:
    reader.take()
    return OtherAttribute(reader.since(start))


def _optional_value(reader: Reader, start: int) -> Attribute:
    if reader.accept("="):
        reader.take()
    return OtherAttribute(reader.since(start))


def _nothing(reader: Reader, start: int) -> Attribute:
    return OtherAttribute(reader.since(start))


def _unique(reader: Reader, start: int) -> Attribute:
    reader.accept("KEY")
    return OtherAttribute(reader.since(start))


_ATTRIBUTES: Final[tuple[tuple[tuple[str, ...], Callable[[Reader, int], Attribute]], ...]] = (
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
    *(((word,), _string) for word in ("COMMENT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE")),
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


def parenthesized(reader: Reader) -> Expression:
    """Read `( … )`."""
    start = reader.start
    reader.skip_parentheses()
    return Expression(reader.since(start))


def index_parts(reader: Reader) -> IndexParts:
    """Read `(column[(length)] [ASC | DESC] or (expression), …)`; what is not that, to its closing parenthesis."""
    mark, start = reader.mark, reader.start
    try:
        return _index_parts(reader)
    except Unsupported as error:
        reader.back(mark)
        reader.skip_parentheses()
        return NotUnderstood(reader.since(start), error.message)


def _index_parts(reader: Reader) -> tuple[IndexPart, ...]:
    reader.expect("(")
    parts: list[IndexPart] = []
    while not reader.accept(")"):
        if reader.peek("("):
            parts.append(parenthesized(reader))
        else:
            parts.append(IndexColumn(reader.column()))
            reader.numbers()
        reader.accept_any("ASC", "DESC")
        if not reader.accept(",") and not reader.peek(")"):
            reader.stop("a part of an index that is not known")
    return tuple(parts)


def references(reader: Reader) -> References:
    """Read what follows REFERENCES. Rows are not changed by it here: the log has what the source's foreign key did,
    or it does not, which `foreign_keys` is about."""
    start = reader.start
    schema, table = "", reader.name()
    if reader.accept("."):
        schema, table = table, reader.name()
    columns = index_parts(reader) if reader.peek("(") else ()
    actions: list[ReferenceAction] = []
    while word := reader.accept_any("ON", "MATCH"):
        event = reader.accept_any("DELETE", "UPDATE")
        action = next((" ".join(words) for words in _ACTIONS if reader.accept(*words)), "")
        if not action:
            reader.take()
        if word == "ON":
            actions.append(ReferenceAction(event, action))
    return References(reader.since(start), schema, table, columns, tuple(actions))


def _word_or_string(reader: Reader) -> str:
    reader.accept("=")
    return reader.string() if reader.token.kind is Lexeme.STRING else reader.name()
