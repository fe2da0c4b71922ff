"""The queue from the thread that reads the source to the one that writes to Kafka, bounded by bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Condition

from connector.log.epochs.loads import LoadRequest, TableLoad
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.definition import Definitions, Redefined
from connector.log.transaction.layout import TableName
from connector.log.transaction.pending import Stored
from connector.log.transaction.position import SnapshotCompleted
from connector.log.writing.fragment import Fragment
from connector.producer.publish.fragments import size_of


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows and bytes of the events that end in the same work, for the metrics of tables.

    Args:
        counts: a table's name, rows, bytes of their images; a name may come again.
    """

    counts: Sequence[tuple[TableName, int, int]]


Record = SnapshotCompleted | Stored | Definitions | Redefined | LoadRequest | TableLoad | RowCounts
Work = list[Fragment | PositionAdvance | Record]
"""Items in the source's order, for one Kafka transaction. Table definitions are in the work with the end of the event
that changed them."""


class WorkQueue:
    """A queue of one producer and one consumer thread.

    Args:
        limit: maximum bytes of queued fragments; larger work is queued alone.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._works: deque[tuple[Work, int]] = deque()
        self._bytes = 0
        self._ended = False
        self._error: BaseException | None = None
        self._changed = Condition()

    def put(self, work: Work) -> None:
        """Queue work; waits while the queue is full.

        Raises:
            ConnectorError: the consumer has failed with this error.
        """
        size = size_of(work)
        with self._changed:
            while self._error is None and self._works and self._bytes + size > self._limit:
                self._changed.wait()
            self._check()
            self._works.append((work, size))
            self._bytes += size
            self._changed.notify_all()

    def check(self) -> None:
        """Raise the consumer's error, if it has failed."""
        with self._changed:
            self._check()

    def end(self) -> None:
        """Mark the end: no more work follows."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def poll(self, timeout: float) -> tuple[Work, int] | None:
        """Return the next work and its bytes; None if none came in time, or the end was reached."""
        with self._changed:
            if not self._works and not self._ended:
                self._changed.wait(timeout)
            if not self._works:
                return None
            work, size = self._works.popleft()
            self._bytes -= size
            self._changed.notify_all()
            return work, size

    def fail(self, error: BaseException) -> None:
        """Record the consumer's error, which the producer's next `put` or `check` raises."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    @property
    def empty(self) -> bool:
        """True if no work is queued."""
        return not self._works

    @property
    def finished(self) -> bool:
        """True once all work was polled and no more follows."""
        return self._ended and not self._works

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
