"""Parses a column's type (MySQL's and MariaDB's manuals, "Data Types")."""

from __future__ import annotations

from typing import Final

from connector.ddl.syntax.ast_column import (
    DataType,
)
from connector.ddl.syntax.reader import TokenReader
from connector.ddl.syntax.type_names import BLOBS, FLOATS, INTEGERS, TEXTS

# Names of the same type. Names of several words come first.
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
# MariaDB's types that the binary log has as BINARY, with their sizes.
_FIXED: Final = {"UUID": 16, "INET6": 16, "INET4": 4}


def data_type(reader: TokenReader) -> DataType:
    """Parse a type with its sizes or labels.

    Raises:
        Unsupported: the type is not known.
    """
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
        reader.stop("unknown type")
    if base in ("enum", "set"):
        labels = tuple(label.rstrip(" ") for label in reader.strings())
        return DataType(reader.since(start), base, labels=labels)
    national = base.startswith("n")
    sizes = reader.numbers()
    return DataType(reader.since(start), base.removeprefix("n"), sizes, national=national)
