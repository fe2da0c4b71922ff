"""By which rule events get their shards: by schema, by table, or before that by patterns.

The rule belongs to the log: it stands in the partition map, and another one is another generation of that. The first
event of a generation is `#UNKNOWN`, a barrier: what older shards held precedes what newer ones hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.log.ids import ShardId
from connector.log.transaction.layout import TableName
from connector.patterns import glob

BY_SCHEMA: Final = "schema"
BY_TABLE: Final = "table"

GENERATION: Final = "shards_generation"
SINCE: Final = "shards_since"
"""In the metadata of markers, from the second generation on: which one it is, and its first event."""


@dataclass(frozen=True, slots=True)
class ShardRule:
    """The rule by which tables belong to shards.

    Args:
        by: BY_SCHEMA or BY_TABLE: of what no pattern finds.
        patterns: shards' names, and what is theirs: `schema.table`, or `schema` for all its tables, with `*` and `?`,
            whatever case names are in; the first that finds a table has it.
    """

    by: str = BY_SCHEMA
    patterns: tuple[tuple[str, str], ...] = ()

    def of(self, table: TableName) -> ShardId:
        """The shard of a table."""
        for name, pattern in self.patterns:
            if finds(pattern, table):
                return ShardId(name)
        return ShardId(str(table) if self.by == BY_TABLE else table.schema)

    def __str__(self) -> str:
        return ", ".join([*(f"{name}: {pattern}" for name, pattern in self.patterns), f"by {self.by}"])


def finds(pattern: str, table: TableName) -> bool:
    """Return whether a pattern matches a table: `schema.table`, or `schema`, split at its first dot, in any case."""
    schema, dot, name = pattern.partition(".")
    return bool(glob(schema, ignore_case=True).fullmatch(table.schema)) and (
        not dot or bool(glob(name, ignore_case=True).fullmatch(table.table))
    )
