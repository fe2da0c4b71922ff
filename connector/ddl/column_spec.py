"""The grammar of one column's definition in CREATE TABLE and ALTER TABLE (MySQL's manual, "CREATE TABLE")."""

from __future__ import annotations

from dataclasses import dataclass

from connector.ddl.column_default import Computed, Literal, Now, Null, read_default
from connector.ddl.reader import Reader
from connector.ddl.tokens import Lexeme, sql_modes
from connector.ddl.type_names import BLOBS, FLOATS, INTEGERS, TEXTS, width
from connector.errors import Unsupported
from connector.log.transaction.layout import Column

# Names that mean the same type. Several words first.
_ALIASES = {
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
_GEOMETRIES = (
    *("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"),
    *("GEOMETRYCOLLECTION", "GEOMCOLLECTION"),
)
_PLAIN = (
    *("BIT", "YEAR", "DATE", "TIME", "DATETIME", "TIMESTAMP", "CHAR", "VARCHAR", "BINARY", "VARBINARY"),
    *("ENUM", "SET", "JSON", "VECTOR", "DECIMAL"),
)
# MariaDB's types that its log holds as BINARY, and their size.
_FIXED = {"UUID": 16, "INET6": 16, "INET4": 4}
_AS_BYTES = {"char": "binary", "varchar": "varbinary"} | dict(zip(TEXTS, BLOBS, strict=True))


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column as a statement defines it.

    Args:
        column: what it is.
        default: what existing rows get; None: not said.
        generated: whether the source computes it.
        primary: whether it is said here to be the primary key.
        inexact: whether its type rounds what is stored: float(7,2).
        counted: whether the source numbers its rows: AUTO_INCREMENT.
        null: whether it is said to be NULL.
        declared: its type by the statement's name, where the column's does not tell it: uuid, inet4, inet6.
        sizes: those that the statement gives the type.
        collation: as the statement names it; "": not said.
    """

    column: Column
    default: Literal | Now | Computed | Null | None
    generated: bool
    primary: bool
    inexact: bool
    counted: bool
    null: bool
    declared: str = ""
    sizes: tuple[int, ...] = ()
    collation: str = ""


def column_spec(reader: Reader, name: str, charset: str, sql_mode: str) -> ColumnSpec:
    """Read what follows a column's name, up to FIRST, AFTER, a comma, a parenthesis or the end.

    Args:
        reader: after the name.
        name: the column's.
        charset: the table's.
        sql_mode: the session's: REAL_AS_FLOAT.

    Raises:
        Unsupported: a type or attribute that is not known.
    """
    if sql_modes(sql_mode) & {"ORACLE", "MAXDB"}:
        reader.stop("a column under sql_mode ORACLE or MAXDB, where types have other meanings,")
    serial = reader.accept("SERIAL")
    word = reader.token.text.upper()
    base, sizes, labels = ("bigint", (), ()) if serial else _type(reader, sql_mode)
    if base.startswith("n"):
        base, charset = base[1:], "utf8mb3"
    if base == "json" and reader.mariadb:
        base, charset = "longtext", "utf8mb4"
    state = _Attributes(unsigned=serial, nullable=not serial)
    while not (reader.at_end or reader.peek(",") or reader.peek(")") or reader.peek("FIRST") or reader.peek("AFTER")):
        _attribute(reader, state)
    charset = state.charset or charset
    if base in _AS_BYTES and charset == "binary":
        base = _AS_BYTES[base]
    text = base in _AS_BYTES or base in ("enum", "set")
    column = Column(
        name=name,
        type=_full(reader, base, sizes, charset),
        unsigned=state.unsigned,
        charset=charset if text else "binary" if base in _AS_BYTES.values() else "",
        labels=labels,
        nullable=state.nullable and not (state.primary or state.counted or _implied(reader, base, state)),
    )
    return ColumnSpec(
        column=column,
        default=state.default,
        generated=state.generated,
        primary=state.primary,
        inexact=base in FLOATS and len(sizes) > 1,
        counted=serial or state.counted,
        null=state.null,
        declared=word.lower() if word in _FIXED else "",
        sizes=sizes,
        collation=state.collation.lower(),
    )


def _implied(reader: Reader, base: str, state: _Attributes) -> bool:
    """Whether a TIMESTAMP is NOT NULL without being told so."""
    if not (reader.implicit and base == "timestamp") or state.null:
        return False
    if state.generated:
        reader.stop("a TIMESTAMP that is computed under explicit_defaults_for_timestamp=OFF")
    return True


def charset_of(collation: str) -> str:
    """The character set a collation belongs to; "" where MariaDB leaves that to the place: uca1400_ai_ci."""
    if collation.lower().startswith("uca1400_"):
        return ""
    return charset_name(collation.split("_", 1)[0])


def charset_name(name: str) -> str:
    """A character set's name as the log has it.

    Raises:
        Unsupported: it is the one that only the source knows.
    """
    if name.lower() == "default":
        raise Unsupported("DDL not understood: a character set that is called DEFAULT")
    return "utf8mb3" if name.lower() == "utf8" else name.lower()


@dataclass(slots=True)
class _Attributes:
    unsigned: bool
    nullable: bool
    charset: str = ""
    collation: str = ""
    default: Literal | Now | Computed | Null | None = None
    generated: bool = False
    primary: bool = False
    counted: bool = False
    null: bool = False


def _type(reader: Reader, sql_mode: str) -> tuple[str, tuple[int, ...], tuple[str, ...]]:
    base = next((alias for words, alias in _ALIASES.items() if reader.accept(*words)), "")
    if base in ("mediumtext", "mediumblob"):
        return base, (), ()
    if not base and reader.accept("REAL"):
        base = "float" if sql_modes(sql_mode) & {"REAL_AS_FLOAT", "ANSI"} else "double"
    if not base and reader.accept_any("BOOLEAN", "BOOL"):
        return "tinyint", (), ()
    if not base and reader.accept_any(*_GEOMETRIES):
        return "geometry", (), ()
    if not base and (fixed := reader.accept_any(*_FIXED)):
        return "binary", (_FIXED[fixed],), ()
    if not base:
        known = [*_PLAIN, *INTEGERS, *FLOATS, *TEXTS, *BLOBS]
        base = reader.accept_any(*(name.upper() for name in known)).lower()
    if not base:
        reader.stop("a type that is not known")
    if base in ("enum", "set"):
        return base, (), tuple(label.rstrip(" ") for label in reader.strings())
    return base, reader.numbers(), ()


def _full(reader: Reader, base: str, sizes: tuple[int, ...], charset: str) -> str:
    """The type as `Column.type` writes it, with what MySQL adds where sizes are left out."""
    if base == "decimal":
        digits, scale = (*sizes, *(10, 0)[len(sizes) :])
        return f"decimal({digits or 10},{scale})"
    if base in ("char", "binary", "bit"):
        return f"{base}({sizes[0] if sizes else 1})"
    if base in ("varchar", "varbinary"):
        if not sizes:
            reader.stop(f"{base} without a length")
        return f"{base}({sizes[0]})"
    if base == "vector":
        return f"vector({sizes[0] if sizes else 2048})"
    if base in ("time", "datetime", "timestamp"):
        return f"{base}({sizes[0]})" if sizes and sizes[0] else base
    if base == "float" and len(sizes) == 1:
        return "float" if sizes[0] <= 24 else "double"
    if base in ("text", "blob") and sizes and sizes[0]:
        names, wide = (TEXTS, width(charset)) if base == "text" else (BLOBS, 1)
        return next(name for name, room in names.items() if sizes[0] * wide <= room)
    return base


def _attribute(reader: Reader, state: _Attributes) -> None:
    if reader.accept("NOT", "NULL"):
        state.nullable = False
    elif reader.accept("NULL"):
        state.nullable = state.null = True
    elif reader.accept("SERIAL", "DEFAULT", "VALUE"):
        state.nullable, state.counted = False, True
    elif reader.accept("AUTO_INCREMENT"):
        state.counted = True
    elif reader.accept_any("UNSIGNED", "ZEROFILL"):
        state.unsigned = True
    elif reader.accept("DEFAULT"):
        state.default = read_default(reader)
    elif reader.accept("ON", "UPDATE"):
        reader.take()
        _call(reader)
    elif reader.accept("CHARACTER", "SET") or reader.accept("CHARSET") or reader.accept("CHAR", "SET"):
        state.charset = charset_name(_word_or_string(reader))
    elif reader.accept("COLLATE"):
        state.collation = _word_or_string(reader)
        state.charset = state.charset or charset_of(state.collation)
    elif reader.accept("ASCII"):
        state.charset = "latin1"
    elif reader.accept("UNICODE"):
        state.charset = "ucs2"
    elif reader.accept("BYTE"):
        state.charset = "binary"
    elif reader.accept("PRIMARY"):
        reader.accept("KEY")
        state.primary = True
    elif reader.accept("UNIQUE"):
        reader.accept("KEY")
    elif reader.accept("KEY"):
        state.primary = True
    elif reader.accept("GENERATED", "ALWAYS", "AS") or reader.accept("AS"):
        reader.skip_parentheses()
        state.generated, state.default = True, Computed()
    elif reader.accept("CONSTRAINT"):
        if not reader.peek("CHECK"):
            reader.name()
        reader.expect("CHECK")
        reader.skip_parentheses()
    elif reader.accept("CHECK"):
        reader.skip_parentheses()
    elif reader.accept("REFERENCES"):
        _references(reader)
    elif reader.accept_any("COMMENT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
        reader.accept("=")
        reader.string()
    elif reader.accept_any("COLUMN_FORMAT", "STORAGE", "SRID"):
        reader.take()
    elif reader.accept("COMPRESSED"):  # MariaDB's
        if reader.accept("="):
            reader.take()
    elif reader.accept("REF_SYSTEM_ID", "="):  # of a geometry, MariaDB's
        reader.take()
    elif reader.accept("WITHOUT", "SYSTEM", "VERSIONING"):
        pass
    elif not reader.accept_any(*_WITHOUT_EFFECT) and not reader.accept("NOT", "ENFORCED"):
        reader.stop("a column attribute that is not known")


_WITHOUT_EFFECT = ["SIGNED", "VISIBLE", "INVISIBLE", "STORED", "VIRTUAL", "PERSISTENT", "BINARY", "ENFORCED"]


def _call(reader: Reader) -> None:
    if reader.peek("("):
        reader.skip_parentheses()


def _word_or_string(reader: Reader) -> str:
    reader.accept("=")
    return reader.string() if reader.token.kind is Lexeme.STRING else reader.name()


def _references(reader: Reader) -> None:
    """A foreign key's other end: rows are not changed by it here, the log has what the source's did."""
    reader.name()
    if reader.accept("."):
        reader.name()
    if reader.peek("("):
        reader.skip_parentheses()
    while reader.accept_any("ON", "MATCH"):
        reader.accept_any("DELETE", "UPDATE")
        if not (reader.accept("SET", "NULL") or reader.accept("SET", "DEFAULT") or reader.accept("NO", "ACTION")):
            reader.take()
