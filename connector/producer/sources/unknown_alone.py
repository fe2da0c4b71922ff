"""Leaves out the transactions that the log already has, by GTID, from a stream that began at a file and offset.

A server with parallel replication may log transactions in another order than the server that was read before, so
transactions after the offset may already be in the log. All of these were on the server when the stream began.
"""

from __future__ import annotations

from connector.log.gtid.source_gtids import Gtids
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.definition import Item, Redefined
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.xa import Prepared
from connector.producer.sources.source import Stream


class Known:
    """The GTIDs of the log, dropped once they cannot occur any more: a lookup costs as much as decoding a transaction.

    Args:
        gtids: the GTIDs of the log.
    """

    def __init__(self, gtids: Gtids) -> None:
        self.gtids: Gtids | None = gtids

    def __contains__(self, gtid: str) -> bool:
        """True if the log has the transaction."""
        return self.gtids is not None and gtid in self.gtids


class UnknownAlone:
    """A `Stream` without the transactions that the log has.

    Args:
        stream: the source's log.
        known: the GTIDs of the log.
        until: the end of the server's log when the stream began; the log has no transaction after it.
    """

    def __init__(self, stream: Stream, known: Known, until: SourcePosition) -> None:
        self._stream = stream
        self._known = known
        self._until = until
        self._gtid: str | None = None  # the transaction that is being left out

    @property
    def ended(self) -> bool:
        """See `Stream`."""
        return self._stream.ended

    def read(self, timeout: float) -> list[Item]:
        """See `Stream`."""
        items = self._stream.read(timeout)
        return items if self._known.gtids is None else [self._end_alone(item) for item in items if self._passes(item)]

    def close(self) -> None:
        """See `Stream`."""
        self._stream.close()

    def _passes(self, item: Item) -> bool:
        """True for an item to return; of a known transaction that is only its end."""
        if isinstance(item, PositionAdvance | Redefined):
            return True
        part = item.batch if isinstance(item, Prepared) else item
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
            part = item.batch if isinstance(item, Prepared) else item
            if part.ending is None:
                return item
            end = part.ending.end
        if self._gtid is not None and not isinstance(item, PositionAdvance):
            item, self._gtid = PositionAdvance(end, self._gtid), None
        if end >= self._until:
            self._known.gtids = None
        return item
