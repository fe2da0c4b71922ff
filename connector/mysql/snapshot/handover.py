"""Hands items from several threads to one, in the order of their arrival; bounded by bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from threading import Condition
from typing import Generic, TypeVar

T = TypeVar("T")


class Closed(Exception):
    """Raised to a thread that hands over an item that nothing takes any more."""


class Handover(Generic[T]):
    """A queue of several producers and one consumer.

    Args:
        limit: maximum bytes of waiting items; a larger item waits alone.
        producers: the number of threads that each call `end` or `fail` once.
    """

    def __init__(self, limit: int, producers: int) -> None:
        self._limit = limit
        self._producers = producers
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._error: BaseException | None = None
        self._closed = False
        self._changed = Condition()

    def put(self, item: T, size: int = 0) -> None:
        """Hands an item over; waits while too much waits already.

        Raises:
            Closed: the consumer takes nothing more.
        """
        with self._changed:
            while not self._closed and self._items and self._bytes + size > self._limit:
                self._changed.wait()
            if self._closed:
                raise Closed
            self._items.append((item, size))
            self._bytes += size
            self._changed.notify_all()

    def end(self) -> None:
        """A producer has no more items."""
        with self._changed:
            self._producers -= 1
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """A producer has failed; the consumer gets the first failure before any waiting item."""
        with self._changed:
            self._error = self._error or error
            self._producers -= 1
            self._changed.notify_all()

    def __iter__(self) -> Iterator[T]:
        """The items until all producers have ended.

        Raises:
            BaseException: a producer's error.
        """
        while True:
            with self._changed:
                while self._error is None and not self._items and self._producers > 0:
                    self._changed.wait()
                if self._error is not None:
                    raise self._error
                if not self._items:
                    return
                item, size = self._items.popleft()
                self._bytes -= size
                self._changed.notify_all()
            yield item

    def close(self) -> None:
        """Refuses further items, and lets waiting producers go. May be repeated."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()
