"""The net changes of one commit with segments: what tasks have compacted, and the driver between them."""

from __future__ import annotations

from connector.log.compact.compact import Compactor
from connector.log.compact.join import joined
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.net_changes import NetChanges
from connector.log.compact.segment import Segment
from connector.log.transaction.layout import TableName


class SegmentChanges:
    """The net changes of the next commit up to its last segment: those of segments, and what precedes each of them.

    Args:
        topic: the event topic, for errors.
        columns: the target's metadata columns; None if it has none.
    """

    def __init__(self, topic: str, columns: MetadataColumns | None) -> None:
        self._topic = topic
        self._columns = columns
        self._changes: list[NetChanges] = []
        self._tables: set[TableName] = set()
        self.rows = 0
        self.size = 0

    def add(self, before: Compactor, segment: Segment) -> None:
        """Add a segment.

        Args:
            before: has the net changes that precede it; is drained.
            segment: the segment.
        """
        self.rows += before.rows + segment.rows
        histories = sum(len(net.inserts.data) for net in segment.changes if net.history_of is not None)
        self.size += before.size + segment.size + histories
        changes = [*before.drain(), *segment.changes]
        self._changes += changes
        self._tables.update(net.layout.name for net in changes)

    @property
    def table_count(self) -> int:
        """The number of tables with changes."""
        return len(self._tables)

    def drain(self) -> list[NetChanges]:
        """Drain them, those of a table joined, in the order in which to apply them.

        Raises:
            LogDamaged: they contradict each other.
        """
        changes, self._changes = self._changes, []
        self.rows = self.size = 0
        self._tables.clear()
        # Rows without a key differ by their event's metadata, which a delete does not have.
        return joined(changes, self._topic, apart=self._columns is not None)
