"""Resolves a column's definition with the defaults of its table and its session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from connector.ddl.indexes import Indexes
from connector.ddl.mariadb import ServerDialect
from connector.ddl.syntax.ast_column import (
    Attribute,
    AutoIncrement,
    CharacterSet,
    Collate,
    Computed,
    DataType,
    Default,
    DefaultClause,
    DefinedColumn,
    Generated,
    IndexColumn,
    InlineCheck,
    InlinePrimaryKey,
    InlineReferences,
    InlineUnique,
    NotUnderstood,
    Nullability,
    OtherAttribute,
    Unsigned,
    stop,
)
from connector.ddl.syntax.ast_table import ForeignKey
from connector.ddl.syntax.type_names import BLOBS, FLOATS, TEXTS, charset_of, width
from connector.log.transaction.layout import Column

_AS_BYTES = {"char": "binary", "varchar": "varbinary"} | dict(zip(TEXTS, BLOBS, strict=True))


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column as a statement defines it.

    Args:
        column: the column as the log describes it.
        default: the default, which existing rows get; None: none given.
        generated: true for a generated column.
        primary: true if the definition has PRIMARY KEY.
        inexact: true if the type rounds values: float(7,2).
        counted: true for AUTO_INCREMENT.
        null: true if the definition has an explicit NULL.
        declared: the type's name in the statement if the column's type differs: uuid, inet4, inet6.
        sizes: the type's sizes in the statement.
        collation: the collation in the statement; "": none.
        unique: true if the definition creates a unique index on the column.
        comment: the column's comment.
    """

    column: Column
    default: Default | None
    generated: bool
    primary: bool
    inexact: bool
    counted: bool
    null: bool
    declared: str = ""
    sizes: tuple[int, ...] = ()
    collation: str = ""
    unique: bool = False
    comment: str = ""


def column_spec(defined: DefinedColumn, charset: str, dialect: ServerDialect) -> ColumnSpec:
    """Resolve a definition.

    Args:
        defined: the syntax tree of the column's definition.
        charset: the table's default character set.
        dialect: the dialect of the statement.

    Raises:
        Unsupported: the definition is not understood.
    """
    definition = defined.definition
    if isinstance(definition, NotUnderstood):
        definition.stop()
    kind = definition.type
    said = _Said(unsigned=kind.serial, nullable=not kind.serial, counted=kind.serial)
    for attribute in definition.attributes:
        _attribute(attribute, said)
    base = kind.base
    charset = said.charset or ("utf8mb3" if kind.national else charset)
    if base == "json" and dialect.mariadb:
        base, charset = "longtext", said.charset or "utf8mb4"
    if base in _AS_BYTES and charset == "binary":
        base = _AS_BYTES[base]
    text = base in _AS_BYTES or base in ("enum", "set")
    column = Column(
        name=defined.name.text,
        type=_full_type(base, kind, charset),
        unsigned=said.unsigned,
        charset=charset if text else "binary" if base in _AS_BYTES.values() else "",
        labels=kind.labels,
        nullable=said.nullable
        and not (said.primary or (said.counted and not said.null) or _not_null_unsaid(base, said, dialect)),
    )
    return ColumnSpec(
        column=column,
        default=said.default,
        generated=said.generated,
        primary=said.primary,
        inexact=base in FLOATS and len(kind.sizes) > 1,
        counted=said.counted,
        null=said.null,
        declared=kind.declared,
        sizes=kind.sizes,
        collation=said.collation.lower(),
        unique=said.unique or kind.serial,
        comment=said.comment,
    )


def add_own_indexes(indexes: Indexes, defined: DefinedColumn, spec: ColumnSpec, dialect: ServerDialect) -> None:
    """Add the indexes of a column's own definition. MariaDB adds no unique index beside the primary key's.

    MariaDB follows REFERENCES there; MySQL does only since 9.0, and a statement does not tell its server's version.
    """
    if spec.unique and not (dialect.mariadb and spec.primary):
        indexes.add_unique(defined.name.text)
    if dialect.mariadb and not isinstance(defined.definition, NotUnderstood):
        for one in defined.definition.attributes:
            if isinstance(one, InlineReferences):
                part = (IndexColumn(defined.name),)
                indexes.add(ForeignKey(one.span, "", part, one.references))


@dataclass(slots=True)
class _Said:
    """The attributes read so far; later ones override earlier ones."""

    unsigned: bool
    nullable: bool
    counted: bool
    charset: str = ""
    collation: str = ""
    default: Default | None = None
    generated: bool = False
    primary: bool = False
    null: bool = False
    unique: bool = False
    comment: str = ""


def _attribute(attribute: Attribute, said: _Said) -> None:
    match attribute:
        case Nullability(_, null):
            said.nullable = null
            said.null = said.null or null
        case AutoIncrement(_, serial):
            said.counted = True
            said.nullable = said.nullable and not serial
            said.unique = said.unique or serial
        case Unsigned():
            said.unsigned = True
        case DefaultClause(_, value, _):
            said.default = value
        case CharacterSet(_, charset):
            said.charset = charset
        case Collate(_, collation):
            said.collation = collation
            said.charset = said.charset or charset_of(collation)
        case InlinePrimaryKey():
            said.primary = True
        case Generated():
            said.generated, said.default = True, Computed()
        case InlineUnique():
            said.unique = True
        case OtherAttribute(_, comment):
            said.comment = said.comment if comment is None else comment
        case InlineCheck() | InlineReferences():
            pass
        case _:
            assert_never(attribute)


def _not_null_unsaid(base: str, said: _Said, dialect: ServerDialect) -> bool:
    """True if a TIMESTAMP is implicitly NOT NULL (explicit_defaults_for_timestamp=OFF)."""
    if not (dialect.implicit and base == "timestamp") or said.null:
        return False
    if said.generated:
        stop("a generated TIMESTAMP under explicit_defaults_for_timestamp=OFF")
    return True


def _full_type(base: str, kind: DataType, charset: str) -> str:
    """Return the type as `Column.type` has it, with MySQL's default sizes."""
    sizes = kind.sizes
    if base == "decimal":
        if len(sizes) > 2:
            stop("a decimal with more than two sizes")
        digits, scale = (*sizes, *(10, 0)[len(sizes) :])
        return f"decimal({digits or 10},{scale})"
    if base in ("char", "binary", "bit"):
        return f"{base}({sizes[0] if sizes else 1})"
    if base in ("varchar", "varbinary"):
        if not sizes:
            stop(f"{base} without a length")
        return f"{base}({sizes[0]})"
    if base == "vector":
        return f"vector({sizes[0] if sizes else 2048})"
    if base in ("time", "datetime", "timestamp"):
        return f"{base}({sizes[0]})" if sizes and sizes[0] else base
    if base == "float" and len(sizes) == 1:
        return "float" if sizes[0] <= 24 else "double"
    if base in ("text", "blob") and sizes and sizes[0]:
        names, wide = (TEXTS, width(charset)) if base == "text" else (BLOBS, 1)
        fitting = next((name for name, room in names.items() if sizes[0] * wide <= room), "")
        if not fitting:
            stop(f"a {base} of {sizes[0]}, which no server supports")
        return fitting
    return base
