"""A stream whose server is checked from time to time for changes that the server does not log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from connector.clock import Clock
from connector.errors import SourceUnavailable
from connector.log.transaction.definition import Item
from connector.producer.sources.source import Stream

LOG: Final = logging.getLogger(__name__)
EVERY: Final = 10.0  # seconds


class WatchedStream:
    """A `Stream` that ends when a check of its server fails.

    Args:
        stream: the source's log.
        check: raises an error if the log cannot be continued.
        clock: the clock.
    """

    def __init__(self, stream: Stream, check: Callable[[], None], clock: Clock) -> None:
        self._stream = stream
        self._check = check
        self._clock = clock
        self._checked = clock.monotonic()

    @property
    def ended(self) -> bool:
        """See `Stream`."""
        return self._stream.ended

    def read(self, timeout: float) -> list[Item]:
        """See `Stream`.

        Raises:
            ConnectorError: the check failed.
        """
        if self._clock.monotonic() - self._checked >= EVERY:
            self._checked = self._clock.monotonic()
            try:
                self._check()
            except SourceUnavailable as error:  # the stream itself reports a lost server
                LOG.debug("the source could not be checked", extra={"why": error})
        return self._stream.read(timeout)

    def close(self) -> None:
        """See `Stream`."""
        self._stream.close()
