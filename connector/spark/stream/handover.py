"""Between the thread in which Spark reads and the one that applies: a queue bounded in batches and in bytes."""

from __future__ import annotations

import threading
from collections import deque

import pyarrow as pa


class Closed(Exception):
    """The other side has gone: there is nobody to hand anything to."""


class Handover:
    """A reader puts batches and waits while there are too many; an applier takes them in order.

    A reader's failure overtakes the batches that wait: the applier ends at once, and what it has not committed
    is read again by whoever comes next.

    Args:
        batches: so many wait at most.
        size: so many bytes wait at most, but one batch always may.
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
        """Hand a batch over; waits for room.

        Raises:
            Closed: the applier has gone.
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
            BaseException: whatever the reader failed with.
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
        """The reader can do no more."""
        with self._changed:
            self._failure = self._failure or failure
            self._changed.notify_all()

    def close(self) -> None:
        """The applier takes no more: a reader that waits is sent away."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._held = 0
            self._changed.notify_all()

    def _room(self, size: int) -> bool:
        return not self._waiting or (len(self._waiting) < self._batches and self._held + size <= self._size)
