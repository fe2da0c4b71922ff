"""The queue between the thread in which Spark reads and the one that applies, bounded in batches and in bytes."""

from __future__ import annotations

import threading
from collections import deque

import pyarrow as pa


class Closed(Exception):
    """The applier has closed the queue."""


class Handover:
    """A queue into which a reader puts batches, and from which an applier gets them in order.

    The reader waits while there are too many. Its failure overtakes the batches that wait: the applier ends at once,
    and the next attempt reads again what is not committed.

    Args:
        batches: the number that waits at most.
        size: the bytes that wait at most; one batch always may.
    """

    def __init__(self, batches: int, size: int) -> None:
        self._batches = batches
        self._size = size
        self._waiting: deque[pa.Table] = deque()
        self._held = 0
        self._failure: BaseException | None = None
        self._closed = False
        self._changed = threading.Condition()

    def put(self, batch: pa.Table) -> None:
        """Put a batch; waits for room.

        Raises:
            Closed: the applier has closed the queue.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._room(batch.nbytes))
            if self._closed:
                raise Closed
            self._waiting.append(batch)
            self._held += batch.nbytes
            self._changed.notify_all()

    def get(self, timeout: float) -> pa.Table | None:
        """The next batch, None when there is none within `timeout` seconds.

        Raises:
            BaseException: the reader's failure.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._failure or self._closed, timeout)
            if self._failure:
                raise self._failure
            if not self._waiting:
                return None
            batch = self._waiting.popleft()
            self._held -= batch.nbytes
            self._changed.notify_all()
            return batch

    def fail(self, failure: BaseException) -> None:
        """Give the applier an error of the reader; the first one counts."""
        with self._changed:
            self._failure = self._failure or failure
            self._changed.notify_all()

    def close(self) -> None:
        """Drop the batches that wait; a reader that waits for room gets `Closed`."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._held = 0
            self._changed.notify_all()

    def _room(self, size: int) -> bool:
        return not self._waiting or (len(self._waiting) < self._batches and self._held + size <= self._size)
