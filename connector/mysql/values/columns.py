"""Columns of a TABLE_MAP: the type as in MySQL's information schema, and the codec of its values.

Type codes and the bytes of their metadata are those of MySQL's `include/field_types.h` and `Table_map_event`.
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.errors import CorruptBinlog, Unsupported, ValueNotRepresentable
from connector.log.transaction.layout import Column, TableName
from connector.mysql.values import charsets, collations, multibyte
from connector.mysql.values.rows import ValueKind

Spec = tuple[int, int, int, bool, object, tuple[bytes, ...]]
"""kind, size, scale, flag, alphabet or codec, labels: see `RowCodec`."""

NUMERIC = frozenset({1, 2, 3, 4, 5, 8, 9, 13, 246})  # types with a bit of signedness
TEXT = frozenset({15, 253, 254, 249, 250, 251, 252, 140, 141})  # types with a collation
BLOB = frozenset({249, 250, 251, 252, 140})
COMPRESSED = frozenset({140, 141})  # MariaDB's BLOB, TEXT and VARCHAR with the attribute COMPRESSED
INTEGERS = {1: ("tinyint", 1), 2: ("smallint", 2), 9: ("mediumint", 3), 3: ("int", 4), 8: ("bigint", 8)}
TIMES = {19: ("time", ValueKind.TIME2), 18: ("datetime", ValueKind.DATETIME2), 17: ("timestamp", ValueKind.TIMESTAMP2)}
OLD_TIMES = {
    11: ("time", ValueKind.OLD_TIME),
    12: ("datetime", ValueKind.OLD_DATETIME),
    7: ("timestamp", ValueKind.OLD_TIMESTAMP),
}
SIZES = {1: "tiny", 2: "", 3: "medium", 4: "long"}


@dataclass(slots=True)
class Raw:
    """A column of the event with its real type. None: the event lacks the field.

    Integers of unknown signedness are decoded as both if these differ, texts of an unknown character set as bytes,
    an ENUM or SET without labels as its number.
    """

    code: int
    meta: bytes
    name: bytes
    nullable: bool
    unsigned: bool | None = None
    collation: int | None = None
    labels: list[bytes] | None = None
    dimension: int = 0


def meta_size(code: int) -> int:
    """Bytes of a type's metadata in the event."""
    if code in {4, 5, 17, 18, 19, 140, 242, 245, 249, 250, 251, 252, 255}:
        return 1
    return 2 if code in {15, 16, 141, 246, 247, 248, 253, 254} else 0


def real_type(code: int, meta: bytes) -> int:
    """The real type: ENUM and SET are logged as strings, with the real type in the first byte of the metadata."""
    return meta[0] if code == 254 and meta[0] in {247, 248} else code


def compile_column(raw: Raw, table: TableName) -> tuple[Column, Spec]:
    """The column of the layout, and its specification for `RowCodec`.

    Raises:
        CorruptBinlog, Unsupported, ValueNotRepresentable: naming table and column.
    """
    name = raw.name.decode(errors="replace")
    try:
        return _compile(raw, raw.name.decode())
    except UnicodeDecodeError as error:
        raise CorruptBinlog("a column's name is not UTF-8", table=table, column=name) from error
    except (CorruptBinlog, Unsupported, ValueNotRepresentable) as error:
        error.where |= {"table": table, "column": name}
        raise


def keeping_bytes(spec: Spec) -> Spec:
    """A copy that keeps as bytes what cannot be decoded: invalid text, differences from an absent JSON document."""
    kind, size, scale, _, charset, labels = spec
    return kind, size, scale, True, charset, labels


def _compile(raw: Raw, name: str) -> tuple[Column, Spec]:
    def made(type_: str, kind: int, size: int = 0, scale: int = 0, charset: str = "") -> tuple[Column, Spec]:
        unsigned = bool(raw.unsigned)
        return Column(name, type_, unsigned, charset, nullable=raw.nullable), (kind, size, scale, unsigned, None, ())

    code, meta = raw.code, raw.meta
    if code in INTEGERS:
        type_, size = INTEGERS[code]
        return made(type_, ValueKind.EITHER if raw.unsigned is None else ValueKind.INTEGER, size)
    if code in TIMES:
        type_, kind = TIMES[code]
        if meta[0] > 6:
            raise CorruptBinlog(f"a time with {meta[0]} digits of a second")
        return made(f"{type_}({meta[0]})" if meta[0] else type_, kind, meta[0])
    if code in OLD_TIMES:
        type_, kind = OLD_TIMES[code]
        return made(type_, kind)
    match code:
        case 4:
            return made("float", ValueKind.FLOAT)
        case 5:
            return made("double", ValueKind.DOUBLE)
        case 10 | 14:
            return made("date", ValueKind.DATE)
        case 13:
            raw.unsigned = False
            return made("year", ValueKind.YEAR)
        case 16:
            bits = meta[1] * 8 + meta[0]
            if not 0 < bits <= 64 or meta[0] > 7:
                raise CorruptBinlog(f"a BIT of {bits} bits")
            return made(f"bit({bits})", ValueKind.BIT, (bits + 7) // 8)
        case 246:
            precision, scale = meta
            if not 0 < precision <= 65 or scale > min(30, precision):
                raise CorruptBinlog(f"a DECIMAL({precision},{scale})")
            return made(f"decimal({precision},{scale})", ValueKind.DECIMAL, precision, scale)
        case 242:
            return made(f"vector({raw.dimension})", ValueKind.BYTES, _prefix(meta))
        case 255:
            return made("geometry", ValueKind.BYTES, _prefix(meta))
        case 245:
            return made("json", ValueKind.JSON, _prefix(meta))
        case 247 | 248:
            return _labelled(raw, name)
        case _ if code in TEXT:
            return _text(raw, name)
    raise Unsupported(f"the column type {code} is not known")


def _prefix(meta: bytes) -> int:
    """Bytes of a blob's length."""
    if not 1 <= meta[0] <= 4:
        raise CorruptBinlog(f"a length of {meta[0]} bytes")
    return meta[0]


def _text(raw: Raw, name: str) -> tuple[Column, Spec]:
    charset = charsets.BINARY if raw.collation is None else collations.charset_of(raw.collation)
    binary = charset == charsets.BINARY
    type_, prefix, pad = _string_type(raw, charset, binary)
    column = Column(name, type_, charset=charset, nullable=raw.nullable)
    spec = (
        (ValueKind.PADDED if pad else ValueKind.BYTES, prefix, pad, False, None, ())
        if binary
        else text_spec(charset, prefix)
    )
    if raw.code in COMPRESSED:
        spec = (spec[0] + ValueKind.COMPRESSED, *spec[1:])
    return column, spec


def text_spec(charset: str, prefix: int = 0) -> Spec:
    """The specification of text of a set with a length of `prefix` bytes."""
    if charset in charsets.UTF8:
        return ValueKind.UTF8, prefix, 0, False, None, ()
    if charset in charsets.WIDE:
        return ValueKind.WIDE, prefix, 0, False, charsets.WIDE[charset], ()
    if charset in multibyte.LONGEST:
        return ValueKind.MULTIBYTE, prefix, multibyte.LONGEST[charset], False, multibyte.codes(charset), ()
    return ValueKind.MAPPED, prefix, 0, False, charsets.table(charset), ()


def _string_type(raw: Raw, charset: str, binary: bool) -> tuple[str, int, int]:
    """The type's name, the bytes of the length before each value, and the size BINARY is padded to."""
    meta = raw.meta
    if raw.code in BLOB:
        prefix = _prefix(meta)
        return SIZES[prefix] + ("blob" if binary else "text"), prefix, 0
    if raw.code == 254:
        # Lengths above 255 borrow two bits, inverted, from the type in the first byte.
        size = meta[1] | ((meta[0] & 0x30) ^ 0x30) << 4
        if raw.collation is None:  # CHAR or BINARY: only the latter is padded
            return f"varbinary({size})", 2 if size > 255 else 1, 0
        shown = f"binary({size})" if binary else f"char({size // charsets.width(charset)})"
        return shown, 2 if size > 255 else 1, size if binary else 0
    size = int.from_bytes(meta, "little")
    if raw.code in COMPRESSED:
        size -= 1  # the byte of the compression method
        shown = f"varbinary({size})" if binary else f"varchar({size // charsets.width(charset)})"
        return shown, 2 if size > 254 else 1, 0
    shown = f"varbinary({size})" if binary else f"varchar({size // charsets.width(charset)})"
    return shown, 2 if size > 255 else 1, 0


def _labelled(raw: Raw, name: str) -> tuple[Column, Spec]:
    size = raw.meta[1]
    is_set = raw.code == 248
    type_ = "set" if is_set else "enum"
    if size not in ({1, 2, 3, 4, 8} if is_set else {1, 2}) or (is_set and raw.labels and len(raw.labels) > 64):
        raise CorruptBinlog(f"an ENUM or SET of {len(raw.labels or ())} labels in {size} bytes")
    if raw.labels is None:
        return Column(name, type_, nullable=raw.nullable), (ValueKind.INTEGER, size, 0, True, None, ())
    if raw.collation is None:
        raise CorruptBinlog("the metadata lacks the collation of a text column")
    charset = collations.charset_of(raw.collation)
    labels = tuple(charsets.decode(label, charset) for label in raw.labels)
    column = Column(name, type_, charset=charset, labels=labels, nullable=raw.nullable)
    kind = ValueKind.SET if is_set else ValueKind.ENUM
    return column, (kind, size, 0, False, None, tuple(label.encode() for label in labels))
