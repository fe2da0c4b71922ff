"""PostgreSQL's indexes for a table's secondary indexes (`target.indexes`). Pure.

No value of the source may be refused because of an index:
- A unique index needs columns whose values differ on the target if they differ on the source. A float may not, nor a
  text in one of `AMBIGUOUS`, of whose characters several are one in Unicode, nor an ENUM or SET with an empty label or
  one that stands twice. Such an index is built, but not as a unique one. In place of a part of a column (`c(10)`) the
  whole is indexed: values whose parts differ differ.
- An entry of a B-tree has room for `ENTRY_BYTES`. A wider column alone gets a hash index; in an index of several
  columns its beginning is indexed.
- json, geometry and vector have no order; FULLTEXT, SPATIAL and VECTOR indexes and those over expressions are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from connector.ddl.indexes import KeyPart, TableIndex
from connector.ddl.syntax.type_names import CHARACTERS, FLOATS
from connector.log.transaction.layout import Column
from connector.targets.postgres.names import NAMES, column_name
from connector.targets.postgres.types import ENTRY_BYTES, VALUE_BYTES, entry_bytes
from connector.targets.table import Table
from connector.targets.types import parse

AMBIGUOUS: Final = frozenset(
    {"armscii8", "big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "tis620", "ujis"}
)
_WIDE: Final = 256
_LEAST: Final = 32  # bytes of a column's beginning that are worth an index


@dataclass(frozen=True, slots=True)
class PostgresIndex:
    """An index of PostgreSQL.

    Args:
        source: the name on the source.
        name: the name that it should have.
        method: btree or hash.
        parts: its columns and expressions, as the catalog shows them: without quotes, with ` DESC`.
        sql: the same as SQL.
        unique: whether it is.
        note: how it differs from the source's, and why; "" if it does not.
    """

    source: str
    name: str
    method: str
    parts: tuple[str, ...]
    sql: tuple[str, ...]
    unique: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class NotBuilt:
    """An index of the source that the target does not get.

    Args:
        source: the name on the source.
        reason: why.
    """

    source: str
    reason: str


def planned(table: Table, index: TableIndex) -> PostgresIndex | NotBuilt:
    """The index that PostgreSQL gets for one of the source."""
    if index.kind:
        return NotBuilt(index.name, f"an index of kind {index.kind}")
    columns = [table.column(part.column) for part in index.parts]
    if not columns or any(column is None for column in columns):
        return NotBuilt(index.name, "an index over columns that are not known")
    found = [(part, column) for part, column in zip(index.parts, columns, strict=True) if column is not None]
    for _, column in found:
        if parse(column.type).base in ("json", "geometry", "vector"):
            return NotBuilt(index.name, f"column {column.name} is {column.type}, which has no order")
    sizes = [entry_bytes(column) for _, column in found]
    note = _not_unique(column for _, column in found) if index.unique else ""
    method, places = "btree", [0] * len(found)
    if sum(sizes) > ENTRY_BYTES:
        note = note or ("not unique on the target, because its values may be too wide" if index.unique else "")
        if len(found) == 1:
            method, note = "hash", note or "a hash index, which finds equal values alone: its values may be too wide"
        else:
            wide = sum(size >= _WIDE for size in sizes)
            room = (ENTRY_BYTES - sum(size for size in sizes if size < _WIDE)) // max(wide, 1) - VALUE_BYTES
            if room < _LEAST:
                return NotBuilt(index.name, f"an entry may have {sum(sizes)} bytes, and {ENTRY_BYTES} are possible")
            note = note or "of wide columns their beginning is indexed"
            places = [_places(part, column, room) if size >= _WIDE else 0
                      for (part, column), size in zip(found, sizes, strict=True)]  # fmt: skip
    unique = index.unique and not note
    shown, sql = [], []
    for (part, column), count in zip(found, places, strict=True):
        order = " DESC" if part.descending and method == "btree" and not unique else ""
        shown.append(_part(NAMES.column(column.name), column, count).replace('"', "") + order)
        sql.append(_part(column_name(column.name), column, count) + order)
    return PostgresIndex(
        index.name, NAMES.index(table.name, index.name), method, tuple(shown), tuple(sql), unique, note
    )


def _part(name: str, column: Column, places: int) -> str:
    """A column, or the beginning of its values."""
    if not places:
        return name
    return f"left({name}, {places})" if _is_text(column) else f"substr({name}, 1, {places})"


def _places(part: KeyPart, column: Column, room: int) -> int:
    """The characters or bytes of a wide column that are indexed."""
    places = room // 4 if _is_text(column) else room
    return min(part.length or places, places)


def _is_text(column: Column) -> bool:
    return parse(column.type).base in (*CHARACTERS, "enum", "set")


def _not_unique(columns: Iterable[Column]) -> str:
    """The reason why a unique index of the source cannot be unique on the target; "" if it can."""
    for column in columns:
        if parse(column.type).base in FLOATS:
            return f"not unique on the target, because {column.name} is {column.type}"
        if column.labels and ("" in column.labels or len(set(column.labels)) < len(column.labels)):
            return f"not unique on the target, because different values of {column.name} have the same labels"
        if column.charset in AMBIGUOUS:
            return f"not unique on the target, because several characters of {column.charset} are one in Unicode"
    return ""
