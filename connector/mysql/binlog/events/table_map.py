"""TABLE_MAP events: the table of the rows that follow.

The format is that of MySQL's `libs/mysql/binlog/event/rows_event.h` (`Table_map_event`). Names, labels, keys,
signedness and character sets are optional metadata: all are there with `binlog_row_metadata=FULL`, signedness and
character sets with MINIMAL, none before MySQL 8.0. Missing names: `connector.mysql.binlog.events.column_names`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from connector.errors import CorruptBinlog, Unsupported
from connector.log.transaction.layout import TableLayout, TableName
from connector.mysql.fields import Fields
from connector.mysql.values.columns import NUMERIC, OLD_TIMES, TEXT, Raw, Spec, compile_column, meta_size, real_type

ENUM, SET = 247, 248
VECTOR, GEOMETRY = 242, 255
MAX_COLUMNS = 4096  # MySQL's limit


@dataclass(slots=True)
class Metadata:
    """The optional metadata. Collations, labels and dimensions are indexed among the columns that have them."""

    unsigned: bytes | None = None
    names: list[bytes] = field(default_factory=list)
    text_collations: dict[int, int] = field(default_factory=dict)
    text_default: int | None = None
    has_text_collations: bool = False
    label_collations: dict[int, int] = field(default_factory=dict)
    label_default: int | None = None
    set_labels: list[list[bytes]] = field(default_factory=list)
    enum_labels: list[list[bytes]] = field(default_factory=list)
    key: tuple[int, ...] = ()
    dimensions: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TableMap:
    """A decoded TABLE_MAP.

    Args:
        name: the table's name.
        raws: the columns; without names and labels unless `named`.
        key: indexes of the primary key's columns, if `named`.
        named: true if the event names the columns.
        hidden_key: true if the first column is a generated invisible primary key
            (`sql_generate_invisible_primary_key`).
    """

    name: TableName
    raws: list[Raw]
    key: tuple[int, ...]
    named: bool
    hidden_key: bool = False


def table_name(body: bytes) -> TableName:
    """Schema and table of a TABLE_MAP without table id and flags."""
    return _name(Fields(body))


def table_map(body: bytes, *, mariadb: bool = False, hidden_key: bool = False) -> TableMap:
    """Decodes a TABLE_MAP without table id and flags.

    Args:
        body: the bytes.
        mariadb: true if MariaDB wrote it.
        hidden_key: from the flags: whether the first column is a generated invisible primary key.

    Raises:
        CorruptBinlog: the bytes contradict the format.
        Unsupported: a field of the metadata is not known.
    """
    event = Fields(body)
    name = _name(event)
    count = event.packed()
    if not 0 < count <= MAX_COLUMNS:
        raise CorruptBinlog(f"a table of {count} columns", table=name)
    types = list(event.take(count))
    metas = Fields(event.packed_text())
    raw_metas = [metas.take(meta_size(code)) for code in types]
    nulls = event.take((count + 7) // 8)
    metadata = _metadata(Fields(event.rest()))
    if metadata.names and len(metadata.names) != count:
        raise CorruptBinlog(f"{count} columns have {len(metadata.names)} names", table=name)
    raws = list(_raws(types, raw_metas, nulls, metadata, mariadb))
    if mariadb and (old := next((raw for raw in raws if raw.code in OLD_TIMES), None)):
        raise _two_formats(name, old)
    if any(index >= count for index in metadata.key):
        raise CorruptBinlog("a key column does not exist", table=name)
    return TableMap(name, raws, metadata.key, bool(metadata.names), hidden_key)


def table_layout(table: TableMap) -> tuple[TableLayout, list[Spec]]:
    """The layout, and the specifications for `RowCodec`.

    Raises:
        CorruptBinlog, Unsupported, ValueNotRepresentable: naming table and column.
    """
    columns, specs = [], []
    for raw in table.raws:
        column, spec = compile_column(raw, table.name)
        columns.append(column)
        specs.append(spec)
    return TableLayout(table.name, tuple(columns), table.key), specs


def _name(event: Fields) -> TableName:
    names = []
    for _ in range(2):
        try:
            names.append(event.text().decode())
        except UnicodeDecodeError as error:
            raise CorruptBinlog("a table's name is not UTF-8") from error
        if event.number(1):
            raise CorruptBinlog("a zero byte is missing after a name")
    return TableName(*names)


def _two_formats(table: TableName, raw: Raw) -> Unsupported:
    """The error for MariaDB's own fractions of a second (5.3): their digits, and so their size, are not logged."""
    name = raw.name.decode(errors="replace")
    return Unsupported(
        f"the column is a {OLD_TIMES[raw.code][0]} of the format before MySQL 5.6, which MariaDB logs without its size",
        hint=f"SET GLOBAL mysql56_temporal_format = ON; ALTER TABLE {table} FORCE;",
        table=table,
        column=name,
    ).with_file_hint("--ignore leaves the table out")


def _raws(types: list[int], metas: list[bytes], nulls: bytes, metadata: Metadata, mariadb: bool) -> Iterator[Raw]:
    """The columns with their metadata."""
    numeric = text = labelled = enums = sets = vectors = 0
    for index, (code, meta) in enumerate(zip(types, metas, strict=True)):
        kind = real_type(code, meta)
        raw = Raw(
            code=kind,
            meta=meta,
            name=metadata.names[index] if metadata.names else b"",
            nullable=bool(nulls[index // 8] >> index % 8 & 1),
        )
        if kind in NUMERIC:
            raw.unsigned = None if metadata.unsigned is None else _bit(metadata.unsigned, numeric)
            numeric += 1
        elif kind in TEXT:
            raw.collation = metadata.text_collations.get(text, metadata.text_default)
            if raw.collation is None and (metadata.has_text_collations or metadata.names):
                raise CorruptBinlog("the metadata lacks the collation of a text column")
            text += 1
        elif kind in {ENUM, SET}:
            raw.collation = metadata.label_collations.get(labelled, metadata.label_default)
            labelled += 1
            if metadata.names and kind == ENUM:
                raw.labels = _at(metadata.enum_labels, enums)
                enums += 1
            elif metadata.names:
                raw.labels = _at(metadata.set_labels, sets)
                sets += 1
        elif kind == GEOMETRY and mariadb:
            text += 1  # MariaDB counts it among the columns with a collation
        elif kind == VECTOR:
            text += 1  # MySQL counts it among the columns with a collation
            raw.dimension = metadata.dimensions[vectors] if vectors < len(metadata.dimensions) else 0
            vectors += 1
        yield raw


def _bit(bits: bytes, index: int) -> bool:
    """One bit of the signedness, most significant first."""
    if index // 8 >= len(bits):
        raise CorruptBinlog("the metadata lacks the signedness of a number column")
    return bool(bits[index // 8] << index % 8 & 0x80)


def _at(labels: list[list[bytes]], index: int) -> list[bytes]:
    if index >= len(labels):
        raise CorruptBinlog("the metadata lacks the labels of an ENUM or SET column")
    return labels[index]


def _metadata(event: Fields) -> Metadata:
    """Reads fields of type, length, value until the event ends."""
    found = Metadata()
    while event.left:
        kind = event.number(1)
        value = Fields(event.packed_text())
        match kind:
            case 1:
                found.unsigned = value.rest()
            case 2:
                found.has_text_collations = True
                found.text_default = value.packed()
                found.text_collations = dict(_pairs(value))
            case 3:
                found.has_text_collations = True
                found.text_collations = dict(enumerate(_all(value)))
            case 4:
                while value.left:
                    found.names.append(value.packed_text())
            case 5:
                found.set_labels = _labels(value)
            case 6:
                found.enum_labels = _labels(value)
            case 8:
                found.key = tuple(_all(value))
            case 9:
                found.key = tuple(index for index, _ in _pairs(value))
            case 10:
                found.label_default = value.packed()
                found.label_collations = dict(_pairs(value))
            case 11:
                found.label_collations = dict(enumerate(_all(value)))
            case 13:
                found.dimensions = list(_all(value))
            case 7 | 12:
                pass  # geometry types and column visibility: images do not depend on them
            case _:
                raise Unsupported(f"a table's metadata has a field of the unknown type {kind}")
    return found


def _all(value: Fields) -> Iterator[int]:
    while value.left:
        yield value.packed()


def _pairs(value: Fields) -> Iterator[tuple[int, int]]:
    while value.left:
        first = value.packed()
        yield first, value.packed()


def _labels(value: Fields) -> list[list[bytes]]:
    columns = []
    while value.left:
        count = value.packed()
        if count > value.left:
            raise CorruptBinlog("more labels than bytes")
        columns.append([value.packed_text() for _ in range(count)])
    return columns
