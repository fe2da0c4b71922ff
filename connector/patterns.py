"""Patterns of names, tables and columns: `*` matches any characters, `?` matches one.

A table's pattern is `schema.table`, or `schema` for all its tables. It is split at its first dot: `?` in a schema's
part also matches a dot in the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

WILDCARDS = {"*": ".*", "?": "."}


@dataclass(frozen=True, slots=True)
class TablePattern:
    """A pattern of tables, compiled by `table_pattern`.

    Args:
        schema: matches schemas.
        table: matches tables; None if the pattern names a whole schema.
    """

    schema: re.Pattern[str]
    table: re.Pattern[str] | None

    def finds(self, schema: str, table: str) -> bool:
        """True if the pattern matches a table."""
        return self.finds_schema(schema) and (self.table is None or self.table.fullmatch(table) is not None)

    def finds_schema(self, schema: str) -> bool:
        """True if the pattern can match a table of the schema."""
        return self.schema.fullmatch(schema) is not None

    @property
    def whole(self) -> bool:
        """True if the pattern matches every table of its schemas."""
        return self.table is None or self.table.pattern == ".*"


@dataclass(frozen=True, slots=True)
class ColumnPatterns:
    """Patterns of columns, compiled by `column_patterns`; by default none.

    Args:
        patterns: each as patterns of its schema, table and column.
    """

    patterns: tuple[tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]], ...] = ()

    def find(self, schema: str, table: str, column: str) -> bool:
        """True if a pattern matches a column."""
        return any(
            one.fullmatch(schema) and two.fullmatch(table) and three.fullmatch(column)
            for one, two, three in self.patterns
        )


NO_COLUMNS = ColumnPatterns()


def column_patterns(texts: Iterable[str]) -> ColumnPatterns:
    """Compiles patterns of columns, `schema.table.column`.

    Raises:
        ValueError: one has not three parts.
    """
    found = []
    for text in texts:
        parts = text.split(".", 2)
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"{text!r} is not SCHEMA.TABLE.COLUMN")
        found.append((glob(parts[0]), glob(parts[1]), glob(parts[2])))
    return ColumnPatterns(tuple(found))


@lru_cache(maxsize=1024)
def table_pattern(text: str, *, ignore_case: bool = False) -> TablePattern:
    """Compiles a pattern of tables.

    Args:
        text: `schema.table` or `schema`.
        ignore_case: true if upper and lower case are the same.

    Raises:
        ValueError: a part is empty.
    """
    schema, dot, table = text.partition(".")
    if not schema or (dot and not table):
        raise ValueError("not a table pattern: write `shop`, `shop.orders` or `shop.*_log`")
    compiled = glob(table, ignore_case=ignore_case) if dot else None
    return TablePattern(glob(schema, ignore_case=ignore_case), compiled)


@lru_cache(maxsize=1024)
def glob(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Compiles a pattern; match it with `fullmatch`.

    Args:
        pattern: the text; every character but `*` and `?` matches itself.
        ignore_case: true if upper and lower case are the same.
    """
    flags = re.DOTALL | re.IGNORECASE if ignore_case else re.DOTALL
    return re.compile("".join(WILDCARDS.get(char) or re.escape(char) for char in pattern), flags)
