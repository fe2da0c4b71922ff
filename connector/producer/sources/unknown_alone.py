"""Leaves out of a stream that began at a file and offset the transactions that the log has by their GTIDs.

A server with parallel replication may log transactions in another order than the server that was read before: after the
offset there may be some that the log has from there. All of them were on the server when the stream began.
"""

from __future__ import annotations

from connector.log.gtid.source_gtids import Gtids
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.definition import Item, Redefined
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.xa import Prepared
from connector.producer.sources.source import Stream


class Known:
    """GTIDs of the log, until they can come no more: a lookup costs as much as to decode a transaction.

    Args:
        gtids: the log's.
    """

    def __init__(self, gtids: Gtids) -> None:
        self.gtids: Gtids | None = gtids

    def __contains__(self, gtid: str) -> bool:
        """True for a transaction that the log has."""
        return self.gtids is not None and gtid in self.gtids


class UnknownAlone:
    """A `Stream`.

    Args:
        stream: the source's log.
        known: GTIDs of the log; dropped when they can come no more.
        until: the end of the server's log when the stream began: no transaction after it is known.
    """

    def __init__(self, stream: Stream, known: Known, until: SourcePosition) -> None:
        self._stream = stream
        self._known = known
        self._until = until
        self._gtid: str | None = None  # of the transaction that is being left out

    @property
    def ended(self) -> bool:
        """As `Stream`."""
        return self._stream.ended

    def read(self, timeout: float) -> list[Item]:
        """As `Stream`."""
        items = self._stream.read(timeout)
        return items if self._known.gtids is None else [self._end_alone(item) for item in items if self._passes(item)]

    def close(self) -> None:
        """As `Stream`."""
        self._stream.close()

    def _passes(self, item: Item) -> bool:
        """True for an item that is passed on; of a known transaction that is the end alone."""
        if isinstance(item, PositionAdvance | Redefined):
            return True
        part = item.piece if isinstance(item, Prepared) else item
        if part.begin is not None:
            gtid = part.begin.gtid
            self._gtid = gtid if gtid is not None and gtid in self._known else None
        return self._gtid is None or part.ending is not None

    def _end_alone(self, item: Item) -> Item:
        if isinstance(item, Redefined):
            return item
        if isinstance(item, PositionAdvance):
            end = item.end
        else:
            part = item.piece if isinstance(item, Prepared) else item
            if part.ending is None:
                return item
            end = part.ending.end
        if self._gtid is not None and not isinstance(item, PositionAdvance):
            item, self._gtid = PositionAdvance(end, self._gtid), None
        if end >= self._until:
            self._known.gtids = None
        return item
