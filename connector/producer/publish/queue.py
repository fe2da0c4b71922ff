"""What waits between the thread that reads the source and the one that writes to Kafka, bounded by bytes."""

from __future__ import annotations

from collections import deque
from threading import Condition

from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.definition import Definitions, Redefined
from connector.log.transaction.pending import Stored
from connector.log.writing.fragment import Fragment
from connector.producer.publish.fragments import size_of
from connector.producer.sources.source import SnapshotCompleted

Work = list[Fragment | PositionAdvance | SnapshotCompleted | Stored | Definitions | Redefined]
"""In the source's order. Never divided between two Kafka transactions. What tables are stands in the same work as the
end of the event that made them so."""


class WorkQueue:
    """A queue of one producer and one consumer thread.

    Args:
        limit: bytes of fragments that may wait; one work larger than that waits alone.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._works: deque[tuple[Work, int]] = deque()
        self._bytes = 0
        self._ended = False
        self._error: BaseException | None = None
        self._changed = Condition()

    def put(self, work: Work) -> None:
        """Give work over; waits while the queue is full.

        Raises:
            ConnectorError: the one that the consumer has failed with.
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
        """Raise what the consumer has failed with, if it has."""
        with self._changed:
            self._check()

    def end(self) -> None:
        """No more comes."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self, timeout: float) -> tuple[Work, int] | None:
        """The next work and its bytes; None when nothing came in time, or nothing more comes."""
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
        """The consumer has failed: whoever puts or checks is told."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._works

    @property
    def finished(self) -> bool:
        """Whether nothing waits and nothing comes."""
        return self._ended and not self._works

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
