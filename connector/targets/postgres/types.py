"""PostgreSQL's types for MySQL's, and the COPY formats of their values.

| MySQL | PostgreSQL |
|---|---|
| tinyint, smallint, tinyint unsigned, year | smallint |
| smallint unsigned, mediumint, mediumint unsigned, int | integer |
| int unsigned, bigint | bigint |
| bigint unsigned | numeric(20) |
| decimal(p,s) | numeric(p,s) |
| float, double | real, double precision |
| date | date |
| datetime(f) | timestamp(f) without time zone |
| timestamp(f) | timestamp(f) with time zone |
| time(f) | interval, hours never made days of: PostgreSQL's time ends at 24:00 |
| char … longtext, enum, set | text; of key columns COLLATE "C": compared by bytes, as keys are |
| json | json: the text as it is; jsonb would change it |
| binary … longblob, geometry, vector | bytea |
| bit(n) | bit(n) |

Values that PostgreSQL lacks stop the applier with table, key and column: dates with a zero part, U+0000 in text.
"""

from __future__ import annotations

from connector.ddl.syntax.type_names import CHARACTERS, INTEGERS, TEXTS
from connector.log.transaction.layout import Column
from connector.targets.postgres.copy import CopyKind
from connector.targets.types import BYTES, parse, room_of

ENTRY_BYTES = 2680
"""The room for values in an entry of a B-tree, which has 2,704 bytes at most with its header and bitmap of NULLs."""
VALUE_BYTES = 8
"""The most bytes of a value's length and alignment in an entry."""

_WHOLE = {16: ("smallint", CopyKind.INT2), 32: ("integer", CopyKind.INT4), 64: ("bigint", CopyKind.INT8)}


def postgres_type(column: Column, *, key: bool = False) -> str:
    """The declared type of a column."""
    kind = parse(column.type)
    if kind.base in INTEGERS or kind.base == "year":
        return _whole(column)[0]
    if kind.base == "decimal":
        return f"numeric({kind.sizes[0]},{kind.sizes[1]})"
    if kind.base == "bit":
        return f"bit({kind.sizes[0]})"
    if kind.base in ("datetime", "timestamp"):
        zone = "with" if kind.base == "timestamp" else "without"
        return f"timestamp({kind.sizes[0] if kind.sizes else 0}) {zone} time zone"
    if kind.base in CHARACTERS or kind.base in ("enum", "set"):
        return 'text COLLATE "C"' if key else "text"
    if kind.base in BYTES or kind.base in ("geometry", "vector"):
        return "bytea"
    return {"float": "real", "double": "double precision", "time": "interval"}.get(kind.base, kind.base)


def by_bytes(column: Column) -> str:
    """The collation of an index on a text column: by bytes, because staging's keys are, and so are comparisons."""
    return ' COLLATE "C"' if postgres_type(column, key=True).startswith("text") else ""


def entry_bytes(column: Column) -> int:
    """The most bytes that a column's value needs in an entry of an index."""
    return _most_bytes(column) + VALUE_BYTES


def _most_bytes(column: Column) -> int:
    kind = parse(column.type)
    if kind.base in ("char", "varchar"):
        return 4 * kind.sizes[0]
    if kind.base in TEXTS:
        return 4 * TEXTS[kind.base]
    if kind.base in BYTES:
        return room_of(kind)
    if kind.base in ("enum", "set"):
        sizes = [len(label.encode()) + 1 for label in column.labels]
        return max(sum(sizes) if kind.base == "set" else max(sizes, default=0), 64)
    return 64


def copy_kind(column: Column) -> CopyKind:
    """The COPY format of a column's values."""
    base = parse(column.type).base
    if base in INTEGERS or base == "year":
        return _whole(column)[1]
    if base in CHARACTERS or base in ("enum", "set", "json"):
        return CopyKind.TEXT
    return _KINDS.get(base, CopyKind.BYTEA)


def bit_count(column: Column) -> int:
    """The number of bits of a bit column; 0 for other types."""
    kind = parse(column.type)
    return kind.sizes[0] if kind.base == "bit" else 0


_KINDS = {
    "decimal": CopyKind.NUMERIC,
    "float": CopyKind.FLOAT4,
    "double": CopyKind.FLOAT8,
    "date": CopyKind.DATE,
    "datetime": CopyKind.TIMESTAMP,
    "timestamp": CopyKind.TIMESTAMP,
    "time": CopyKind.INTERVAL,
    "bit": CopyKind.BIT,
}


def _whole(column: Column) -> tuple[str, CopyKind]:
    """The narrowest integer type for all values; an unsigned type needs one more bit."""
    bits = INTEGERS.get(parse(column.type).base, 15) + column.unsigned
    for width, found in _WHOLE.items():
        if bits <= width:
            return found
    return "numeric(20)", CopyKind.NUMERIC
