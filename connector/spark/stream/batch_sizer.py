"""Sizes micro-batches: as many messages as fit in a batch's bytes.

Spark limits the number of messages, but memory limits bytes, and a message has from 300 bytes (a short transaction) to
64 KiB (a long one). So the number follows the size of the messages. A change restarts the query (some 0.1 s), so the
number changes only if it is far off, and only after full batches; other batches ended at the log's end.

The same applies to a poll: its unpacked messages are in the heap, for each partition, and can be a thousand times as
large as on the wire. So a poll gets few large messages, but many small ones: Spark seeks before each poll and drops
other fetched messages (with 16 small messages per poll the rate is halved).
"""

from __future__ import annotations

from typing import Final

FEWEST: Final = 50
MOST: Final = 20_000
FAR_OFF: Final = 2.5  # times
SHRINK: Final = 8
POLL: Final = 128  # messages
POLL_LARGE: Final = 8
SMALL: Final = 2_000  # number of consecutive messages without a large one before polls get larger


class BatchSizer:
    """Sizes the batches and polls of one stream.

    Args:
        messages: maximum number of messages of the first batch.
        size: target size of a batch in bytes.
    """

    def __init__(self, messages: int, size: int) -> None:
        self.messages = messages
        self._size = size
        self._most = MOST
        self.poll = POLL_LARGE  # the size of the first messages is not known
        self._small = 0

    def seen(self, messages: int, size: int, large: int = 0) -> bool:
        """Adapt to a batch.

        Args:
            messages: number of its messages.
            size: bytes of its messages.
            large: number of messages that are too large for Spark.

        Returns:
            True if `messages` has changed.
        """
        self._small = 0 if large else self._small + messages
        if large:
            self.poll = POLL_LARGE
        elif self._small >= SMALL:
            self.poll = POLL
        if messages < self.messages * 0.9:
            return False
        fitting = min(self._most, max(FEWEST, self._size * messages // max(1, size)))
        if self.messages / FAR_OFF < fitting < self.messages * FAR_OFF:
            return False
        return self._change(fitting)

    def refused(self) -> bool:
        """Adapt to a batch that did not fit: later batches have fewer messages.

        Returns:
            True if `messages` has changed; False if it is already 1.
        """
        self._most = max(1, self.messages // SHRINK)
        return self._change(self._most)

    def _change(self, messages: int) -> bool:
        changed = messages != self.messages
        self.messages = messages
        return changed
