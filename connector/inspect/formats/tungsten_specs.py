"""Formats a column as Tungsten's `-specs` does, by JDBC's types.

The numbers and names are those of `java.sql.Types`. A type without a counterpart there (ENUM, SET, geometry, vectors)
is OTHER; `desc` is MySQL's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from connector.errors import escaped

_TYPES: Final = {
    "tinyint": (4, "INTEGER"),
    "smallint": (4, "INTEGER"),
    "mediumint": (4, "INTEGER"),
    "int": (4, "INTEGER"),
    "bigint": (-5, "BIGINT"),
    "decimal": (3, "DECIMAL"),
    "float": (6, "FLOAT"),
    "double": (8, "DOUBLE"),
    "bit": (-7, "BIT"),
    "char": (1, "CHAR"),
    "varchar": (12, "VARCHAR"),
    "binary": (-2, "BINARY"),
    "varbinary": (-3, "VARBINARY"),
    "tinytext": (2004, "BLOB"),
    "text": (2004, "BLOB"),
    "mediumtext": (2004, "BLOB"),
    "longtext": (2004, "BLOB"),
    "tinyblob": (2004, "BLOB"),
    "blob": (2004, "BLOB"),
    "mediumblob": (2004, "BLOB"),
    "longblob": (2004, "BLOB"),
    "json": (2004, "BLOB"),
    "date": (91, "DATE"),
    "year": (91, "DATE"),
    "time": (92, "TIME"),
    "datetime": (93, "TIMESTAMP"),
    "timestamp": (93, "TIMESTAMP"),
}
_OTHER: Final = (1111, "OTHER")
_PARTS: Final = re.compile(r"(?P<name>\w+)(\((?P<length>\d+))?")


def specs(index: int, column: Mapping[str, Any]) -> str:
    """Return the text in the brackets of a value's line: `index=1 name=id type=4 [INTEGER] … desc=int`.

    Args:
        index: index of the column, from 0.
        column: the column's fields in schemas/fragment.avsc.
    """
    parts = _PARTS.match(column["type"])
    name, length = (parts["name"], parts["length"] or "0") if parts else ("", "0")
    number, jdbc = _TYPES.get(name, _OTHER)
    return (
        f"index={index + 1} name={escaped(column['name'])} type={number} [{jdbc}] length={length} "
        f"unsigned={_java(column['unsigned'])} blob={_java(jdbc == 'BLOB')} desc={column['type']}"
    )


def _java(value: bool) -> str:
    return "true" if value else "false"
