"""DuckDB's types for MySQL's, and the form in which a value gets there.

| MySQL | DuckDB |
|---|---|
| tinyint, smallint, mediumint, int, bigint | TINYINT, SMALLINT, INTEGER, INTEGER, BIGINT |
| the same, unsigned | UTINYINT, USMALLINT, INTEGER, UINTEGER, UBIGINT |
| year | SMALLINT |
| float, double | FLOAT, DOUBLE |
| decimal(p,s) | DECIMAL(p,s); VARCHAR above 38 digits, which is the most that DuckDB has |
| date, datetime | DATE, TIMESTAMP |
| timestamp | TIMESTAMP WITH TIME ZONE |
| time | INTERVAL, hours never made days of: DuckDB's TIME ends at 24:00 |
| char … longtext, enum, set | VARCHAR |
| json | JSON: the text as it is |
| bit(n) | BIT of n digits |
| binary … longblob, geometry, vector | BLOB |

Values that DuckDB lacks stop the applier with table, key and column: dates with a zero part.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from connector.ddl.syntax.type_names import FLOATS, INTEGERS
from connector.log.transaction.layout import Column
from connector.targets.types import BYTES, fraction, parse

DECIMAL_DIGITS: Final = 38

_SIGNED: Final = {8: "TINYINT", 16: "SMALLINT", 24: "INTEGER", 32: "INTEGER", 64: "BIGINT"}
_UNSIGNED: Final = {8: "UTINYINT", 16: "USMALLINT", 24: "INTEGER", 32: "UINTEGER", 64: "UBIGINT"}
_OTHERS: Final = {
    "year": "SMALLINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "datetime": "TIMESTAMP",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "time": "INTERVAL",
    "json": "JSON",
    "bit": "BIT",
    "geometry": "BLOB",
    "vector": "BLOB",
}


class Form(Enum):
    """The form of a column's values in an Arrow table, by DuckDB's name for it."""

    WHOLE = "BIGINT"
    UNSIGNED = "UBIGINT"
    REAL = "DOUBLE"
    TEXT = "VARCHAR"
    BITS = "BIT"  # as text of digits
    BYTES = "BLOB"


def duckdb_type(column: Column) -> str:
    """The type of a column, as DuckDB's dictionary prints it."""
    kind = parse(column.type)
    if kind.base in INTEGERS:
        return (_UNSIGNED if column.unsigned else _SIGNED)[INTEGERS[kind.base]]
    if kind.base == "decimal":
        return f"DECIMAL({kind.sizes[0]},{kind.sizes[1]})" if kind.sizes[0] <= DECIMAL_DIGITS else "VARCHAR"
    if kind.base in BYTES:
        return "BLOB"
    return _OTHERS.get(kind.base, "VARCHAR")


def form_of(column: Column) -> Form:
    """The form of a column's values."""
    kind = duckdb_type(column)
    if kind == "UBIGINT":
        return Form.UNSIGNED
    if kind in ("FLOAT", "DOUBLE"):
        return Form.REAL
    if kind in ("BLOB", "BIT"):
        return Form.BYTES if kind == "BLOB" else Form.BITS
    return Form.WHOLE if parse(column.type).base in (*INTEGERS, "year") else Form.TEXT


def typed(column: Column, value: str, *, attempt: bool = False) -> str:
    """A value in its form as an SQL expression of the column's type.

    Args:
        column: the column.
        value: the expression of the value in its form.
        attempt: NULL for a value that the type does not have, instead of an error.
    """
    kind = duckdb_type(column)
    if kind == form_of(column).value != "BIT":
        return value
    if kind.startswith("TIMESTAMP WITH"):
        value = f"({value} || '+00')"  # the log's are in UTC
    return f"{'TRY_CAST' if attempt else 'CAST'}({value} AS {kind})"


def logged(column: Column, value: str) -> str:
    """A stored value as an SQL expression of the log's value: the text that MySQL prints, a number or bytes."""
    kind = parse(column.type)
    if kind.base in FLOATS:
        return f"CAST({value} AS DOUBLE)"
    if kind.base in ("datetime", "timestamp"):
        utc = f"make_timestamp(epoch_us({value}))" if kind.base == "timestamp" else value
        places = fraction(column)
        return f"left(strftime({utc}, '%Y-%m-%d %H:%M:%S.%f'), {20 + places if places else 19})"
    if kind.base == "time":
        text, places = f"CAST({value} AS VARCHAR)", fraction(column)
        padded = f" || '.' || rpad(split_part({text}, '.', 2), {places}, '0')" if places else ""
        return f"split_part({text}, '.', 1){padded}"
    if kind.base == "bit":
        return f"CAST({value} AS BLOB)"
    text = f"CAST({value} AS VARCHAR)"
    if kind.base == "decimal" and kind.sizes[0] == kind.sizes[1]:  # DuckDB prints .5
        return f"CASE WHEN {value} < 0 THEN '-' ELSE '' END || '0.' || split_part({text}, '.', 2)"
    return text if form_of(column) is Form.TEXT else value
