"""The rule by which events get their shards: by patterns, else by schema or table.

The rule belongs to the log: the partition map has it, and another rule makes another version of the map. The first
event of a version is `#UNKNOWN`, a barrier: events of older shards precede those of newer ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.log.ids import ShardId
from connector.log.transaction.layout import TableName
from connector.patterns import table_pattern

BY_SCHEMA: Final = "schema"
BY_TABLE: Final = "table"

VERSION: Final = "shards_generation"
SINCE: Final = "shards_since"
"""In the metadata of markers, from the second version of the map on: its number, and its first event."""


@dataclass(frozen=True, slots=True)
class ShardRule:
    """The rule by which tables belong to shards.

    Args:
        by: BY_SCHEMA or BY_TABLE: the shard of tables that no pattern matches.
        patterns: pairs of a shard's name and a pattern: `schema.table`, or `schema` for all its tables, with `*` and
            `?`, in any case. A table belongs to the first pattern that matches it.
    """

    by: str = BY_SCHEMA
    patterns: tuple[tuple[str, str], ...] = ()

    def of(self, table: TableName) -> ShardId:
        """The shard of a table."""
        for name, pattern in self.patterns:
            if table_pattern(pattern, ignore_case=True).finds(table.schema, table.table):
                return ShardId(name)
        return ShardId(str(table) if self.by == BY_TABLE else table.schema)

    def __str__(self) -> str:
        return ", ".join([*(f"{name}: {pattern}" for name, pattern in self.patterns), f"by {self.by}"])
