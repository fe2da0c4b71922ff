"""Sizes what is read at once: as many messages as fit in the bytes of `apply.batch_bytes`.

Offsets count messages, but memory limits bytes, and a message has from 300 bytes (a short transaction) to 64 KiB (a
long one). So the number follows the size of the messages. With several partitions, segments end at multiples of
`interval`, so that they end together. The interval is about a quarter of a batch's events, because events after the
last whole interval must wait.
"""

from __future__ import annotations

from typing import Final

FEWEST: Final = 50
MOST: Final = 200_000
SHRINK: Final = 8
GROWTH: Final = 8  # times that a batch may be larger than the one before: its messages may be, too
LARGE_MESSAGES: Final = 128 << 10  # bytes of an average message from which on messages are large
INTERVALS: Final = 4  # fewest intervals of seqnos in a batch
FIRST_INTERVAL: Final = 256


class BatchSizer:
    """Sizes the batches of one stream.

    Args:
        messages: maximum number of messages of the first batch.
        size: target size of a batch in bytes.

    Attributes:
        messages: the most messages of the next batch.
        large: messages may be large: so they were in the last batch, or there was none.
        interval: the length of an interval of seqnos, with which a segment of one of several partitions ends.
    """

    def __init__(self, messages: int, size: int) -> None:
        self.messages = messages
        self.large = True
        self.interval = FIRST_INTERVAL
        self._mean = 0  # bytes of an average message of the last batch
        self._size = size
        self._most = MOST

    def seen(self, messages: int, size: int, events: int = 0) -> None:
        """Adapt to a batch.

        Args:
            messages: number of its messages.
            size: bytes of its messages.
            events: number of the events in its segments.
        """
        if events:
            self.interval = 1 << max(0, (events // INTERVALS).bit_length() - 1)
        if messages:
            self._mean = size // messages
            self.large = self._mean > LARGE_MESSAGES
            self._most = min(MOST, 2 * self._most)
            fitting = max(FEWEST, self._size * messages // max(1, size))
            self.messages = min(self._most, fitting, GROWTH * max(messages, FEWEST))

    def fitting(self, size: int) -> int:
        """The number of messages that fit into `size` bytes, if the next ones are about as large as the last."""
        return max(1, size * 3 // 4 // self._mean) if self._mean else MOST

    def refused(self) -> bool:
        """Adapt to a batch that did not fit: later batches have fewer messages.

        Returns:
            True if `messages` has changed; False if it is already 1.
        """
        before, self._most = self.messages, max(1, self.messages // SHRINK)
        self.messages = self._most
        return self.messages != before
