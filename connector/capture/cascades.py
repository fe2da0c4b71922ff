"""Foreign keys whose actions change rows below the binary log: their changes are nowhere to be read.

MySQL before 9.6 does ON DELETE and ON UPDATE CASCADE, SET NULL and SET DEFAULT inside the storage engine
(Reference Manual, "InnoDB and MySQL Replication").
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.capture.connection import Connection, query, quoted
from connector.capture.filters import Filter

_KEYS = """
SELECT CONSTRAINT_SCHEMA AS s, TABLE_NAME AS t, CONSTRAINT_NAME AS c, DELETE_RULE AS on_delete, UPDATE_RULE AS on_update
FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE DELETE_RULE NOT IN ('NO ACTION', 'RESTRICT') OR UPDATE_RULE NOT IN ('NO ACTION', 'RESTRICT')
ORDER BY CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME
"""


@dataclass(frozen=True, slots=True)
class CascadingKey:
    """One such key; `table` and `name` quoted for SQL."""

    table: str
    name: str
    actions: str

    def __str__(self) -> str:
        return f"{self.table}.{self.name} ({self.actions})"


def cascading_keys(connection: Connection, filter: Filter) -> list[CascadingKey]:
    """Those of captured tables, as far as the user may see them."""
    keys = []
    for row in query(connection, _KEYS):
        if filter.wants(row["s"], row["t"]):
            rules = {"ON DELETE": row["on_delete"], "ON UPDATE": row["on_update"]}
            actions = ", ".join(
                f"{event} {rule}" for event, rule in rules.items() if rule not in {"NO ACTION", "RESTRICT"}
            )
            keys.append(CascadingKey(f"{quoted(row['s'])}.{quoted(row['t'])}", quoted(row["c"]), actions))
    return keys
