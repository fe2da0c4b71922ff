"""Tables without a primary key whose rows the log tells by a unique key: they are to be found by an index there too.

MySQL logs the first unique key that is NOT NULL as if it were the primary key. What we know of a table has no unique
keys, but rows tell; so the index is made when the first row is to be found by it. It is not unique: that is for the
source to keep, and the key may go while the index stays.
"""

from __future__ import annotations

from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableName
from connector.targets.operations import IndexKey
from connector.targets.table import Table


class UniqueKeyIndex:
    """Remembers which tables have their index, as far as this session has looked."""

    def __init__(self) -> None:
        self._looked: dict[TableName, tuple[int, ...]] = {}

    def missing(self, net: NetChanges, table: Table) -> IndexKey | None:
        """What is to be done before these changes; None: nothing, or it was asked for before."""
        key = net.layout.key
        if table.layout.key or not key or self._looked.get(table.name) == key:
            return None
        if not (len(net.deletes) or len(net.updates) or net.partial):
            return None
        self._looked[table.name] = key
        return IndexKey(table, tuple(net.layout.columns[index].name for index in key))

    def forget(self) -> None:
        """Tables are others now, or what was to be done was not."""
        self._looked.clear()
