"""A stream beside which its server is checked now and then, for changes that the server does not log."""

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
        check: raises an error where the log cannot go on.
        clock: the time.
    """

    def __init__(self, stream: Stream, check: Callable[[], None], clock: Clock) -> None:
        self._stream = stream
        self._check = check
        self._clock = clock
        self._checked = clock.monotonic()

    @property
    def ended(self) -> bool:
        """As `Stream`."""
        return self._stream.ended

    def read(self, timeout: float) -> list[Item]:
        """As `Stream`.

        Raises:
            ConnectorError: also the check's.
        """
        if self._clock.monotonic() - self._checked >= EVERY:
            self._checked = self._clock.monotonic()
            try:
                self._check()
            except SourceUnavailable as error:  # the stream itself notices a server that is gone
                LOG.debug("the source could not be checked", extra={"why": error})
        return self._stream.read(timeout)

    def close(self) -> None:
        """As `Stream`."""
        self._stream.close()
