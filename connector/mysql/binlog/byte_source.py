"""The seam to what the bytes of a binary log come from: a dump, a file, an archive."""

from __future__ import annotations

from typing import Protocol


class ByteSource(Protocol):
    """A source of the bytes that frames are cut from."""

    def receive(self, into: memoryview, timeout: float) -> int | None:
        """Fills `into` with available bytes; waits at most `timeout` seconds for the first.

        Returns:
            The number of bytes; None: none in time; 0: the source has ended.
        """

    def close(self) -> None:
        """Releases the source."""
