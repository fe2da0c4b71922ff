"""Histories: tables beside the target's tables that have each change of a row as a row of their own.

Compaction leaves one change of each key; a history has all of them. Its rows are made beside compaction, from the same
bytes, and from there on they are inserts into a table: no target treats them differently.

A history's columns do not depend on those of its table: a row's values are a JSON object, with the names that the
columns had when the row was written. So DDL changes no history, and a value that was not logged is absent, not NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from connector.log.compact.metadata_columns import SEQNO, MetadataColumns
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.patterns import TablePattern, table_pattern

SUFFIX: Final = "__history"
"""What follows the name of a table's schema in that of its history's; their tables have the same name."""

EVENT: Final = MetadataColumns(
    (SEQNO, "commit_time"), (Column("seqno", "bigint", nullable=False), Column("commit_time", "timestamp(6)"))
)
"""The columns that an event's rows have in common; the commit time may be known only at its end."""

COLUMNS: Final = (
    EVENT.columns[0],
    Column("position", "bigint", nullable=False),  # in the event: rows from 0 on, its statements -1
    Column("action", "varchar(10)", charset="utf8mb4", nullable=False),
    Column("row_before", "json"),
    Column("row_after", "json"),
    Column("statement", "longtext", charset="utf8mb4"),
    EVENT.columns[1],
)
"""The columns of every history; the first two are its key."""


@dataclass(frozen=True, slots=True)
class HistoryTables:
    """The tables that have a history.

    Args:
        patterns: of their names.
    """

    patterns: tuple[TablePattern, ...]

    def finds(self, name: TableName) -> bool:
        """True if a table has one."""
        return any(one.finds(*name) for one in self.patterns)


def history_tables(texts: Iterable[str]) -> HistoryTables | None:
    """The tables that patterns name; None if there are none."""
    patterns = tuple(table_pattern(text.strip()) for text in texts)
    return HistoryTables(patterns) if patterns else None


def history_layout(name: TableName) -> TableLayout:
    """The layout of a table's history."""
    return TableLayout(history_name(name), COLUMNS, (0, 1))


def history_name(name: TableName) -> TableName:
    """The name of a table's history."""
    return TableName(name.schema + SUFFIX, name.table)
