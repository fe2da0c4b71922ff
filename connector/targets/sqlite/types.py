"""SQLite's types for MySQL's, in STRICT tables.

| MySQL | SQLite | how |
|---|---|---|
| integers, year | INTEGER | |
| bigint unsigned | ANY | INTEGER below 2^63, TEXT of its digits above: `CAST(c AS TEXT)` is MySQL's text |
| float, double | ANY | always REAL; a column declared REAL would lose the sign of -0.0 |
| decimal, date, time, datetime, timestamp | TEXT | as MySQL prints it; timestamp in UTC |
| char … longtext, enum, set, json | TEXT | |
| binary … longblob, bit, geometry, vector | BLOB | bit: big-endian |

A STRICT table refuses values of another type, and ANY stores every value unconverted.
"""

from __future__ import annotations

from connector.ddl.syntax.type_names import FLOATS, INTEGERS
from connector.log.transaction.layout import Column
from connector.targets.types import BYTES, parse


def sqlite_type(column: Column) -> str:
    """The declared type of a column."""
    base = parse(column.type).base
    if base in FLOATS or (base == "bigint" and column.unsigned):
        return "ANY"
    if base in INTEGERS or base == "year":
        return "INTEGER"
    if base in BYTES or base in ("bit", "geometry", "vector"):
        return "BLOB"
    return "TEXT"
