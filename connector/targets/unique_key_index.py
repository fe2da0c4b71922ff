"""Indexes for tables without a primary key whose rows the log identifies by a unique key.

MySQL logs the first unique key that is NOT NULL as if it were the primary key. Tables on the target have no unique
keys, or (`target.indexes`) keys in another collation; the rows' layouts name the key, so the index is created before
the first row is looked up by it. It is not unique: the source enforces the key, and may drop it while the index stays.
"""

from __future__ import annotations

from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableName
from connector.targets.operations import IndexKey
from connector.targets.table import Table


class UniqueKeyIndex:
    """The tables whose index this session has requested."""

    def __init__(self) -> None:
        self._requested: dict[TableName, tuple[int, ...]] = {}

    def missing(self, net: NetChanges, table: Table) -> IndexKey | None:
        """The index to create before these changes; None if none is needed or it was requested before."""
        key = net.layout.key
        if table.layout.key or not key or self._requested.get(table.name) == key:
            return None
        if not (len(net.deletes) or len(net.updates) or net.partial):
            return None
        self._requested[table.name] = key
        return IndexKey(table, tuple(net.layout.columns[index].name for index in key))

    def forget(self) -> None:
        """Forget all requests: definitions have changed, or changes were discarded."""
        self._requested.clear()
