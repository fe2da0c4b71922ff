"""The queue from Spark's reading thread to the applier's thread, bounded in batches and bytes."""

from __future__ import annotations

import threading
from collections import deque

from connector.spark.stream.parts import Batch


class QueueClosed(Exception):
    """Raised to the reader when the applier has closed the queue."""


class BatchQueue:
    """A queue of batches from a reader to an applier.

    The reader waits while the queue is full. Its failure overtakes queued batches: the applier ends at once, and the
    next attempt reads uncommitted messages again.

    Args:
        batches: maximum number of queued batches.
        size: maximum bytes of queued batches; a single batch is always accepted.
    """

    def __init__(self, batches: int, size: int) -> None:
        self._batches = batches
        self._size = size
        self._waiting: deque[Batch] = deque()
        self._held = 0
        self._failure: BaseException | None = None
        self._closed = False
        self._changed = threading.Condition()

    def put(self, batch: Batch) -> None:
        """Put a batch; waits for room.

        Raises:
            QueueClosed: the applier has closed the queue.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._room(batch.size))
            if self._closed:
                raise QueueClosed
            self._waiting.append(batch)
            self._held += batch.size
            self._changed.notify_all()

    def get(self, timeout: float) -> Batch | None:
        """Return the next batch; None if none comes within `timeout` seconds.

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
            self._held -= batch.size
            self._changed.notify_all()
            return batch

    def fail(self, failure: BaseException) -> None:
        """Pass an error of the reader to the applier; only the first one counts."""
        with self._changed:
            self._failure = self._failure or failure
            self._changed.notify_all()

    def close(self) -> None:
        """Drop the queued batches; a reader that waits for room gets `QueueClosed`."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._held = 0
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """True once the applier has closed the queue."""
        return self._closed

    def _room(self, size: int) -> bool:
        return not self._waiting or (len(self._waiting) < self._batches and self._held + size <= self._size)
