"""A server's stream beside which the server is looked at: for what changes there and its log does not tell."""

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
    """A `Stream` that ends when a look at its server fails.

    Args:
        stream: the log.
        look: raises what the log cannot go on with.
        clock: the time.
    """

    def __init__(self, stream: Stream, look: Callable[[], None], clock: Clock) -> None:
        self._stream = stream
        self._look = look
        self._clock = clock
        self._looked = clock.monotonic()

    @property
    def ended(self) -> bool:
        """As `Stream`."""
        return self._stream.ended

    def read(self, timeout: float) -> list[Item]:
        """As `Stream`.

        Raises:
            ConnectorError: also what the look has found.
        """
        if self._clock.monotonic() - self._looked >= EVERY:
            self._looked = self._clock.monotonic()
            try:
                self._look()
            except SourceUnavailable as error:  # the stream itself tells whether the server is gone
                LOG.debug("the source could not be looked at", extra={"why": error})
        return self._stream.read(timeout)

    def close(self) -> None:
        """As `Stream`."""
        self._stream.close()
