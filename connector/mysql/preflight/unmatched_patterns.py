"""Finds patterns of `source.filters` that match no table of the source: most likely they are misspelt.

Patterns of columns (drop, mask, zero_dates, rename) are checked against the tables that the log has, by `Filter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from connector.config import Filters
from connector.mysql.server.connection import Connection, query
from connector.mysql.transforms.filters import TABLES_WITH_ROWS
from connector.patterns import table_pattern

_TABLES: Final = f"SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t FROM information_schema.TABLES WHERE {TABLES_WITH_ROWS}"


def unmatched_patterns(connection: Connection, filters: Filters, fold: Callable[[str], str]) -> Iterator[str]:
    """Return a warning for each pattern that matches no table which the user may see.

    Args:
        connection: a session on the source.
        filters: the configured patterns.
        fold: normalises names as the server compares them.
    """
    patterns = {
        "source.filters.do": filters.do,
        "source.filters.ignore": filters.ignore,
        **{f"source.filters.tables.{number}.match": rule.match for number, rule in enumerate(filters.tables)},
    }
    if not any(patterns.values()):
        return
    tables = [(fold(str(row["s"])), fold(str(row["t"]))) for row in query(connection, _TABLES)]
    for field, found in patterns.items():
        for pattern in found:
            if not any(table_pattern(fold(pattern.strip())).finds(*table) for table in tables):
                yield f"{field}: the pattern {pattern} matches no table of the source that the user may see"
