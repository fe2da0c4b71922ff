"""Sizes micro-batches: as many messages as fit in a batch's bytes.

Spark counts messages, memory counts bytes, and a message has from 300 bytes (a short transaction) to 64 KiB (a long
one). So the number follows the size of the messages. A change restarts the query (some 0.1 s), so the number changes
only when it is far off, and only after full batches: any other ended at the log's end.

The same holds for a poll: the messages that it has unpacked are in the heap, for each partition, and can be a thousand
times as large as on the wire. Where messages are large a poll takes few. Else many: Spark seeks before each poll, and
loses what else was fetched (with 16 small messages a poll, half the rate).
"""

from __future__ import annotations

from typing import Final

FEWEST: Final = 50
MOST: Final = 20_000
FAR_OFF: Final = 2.5  # times
SHRINK: Final = 8
POLL: Final = 128  # messages
POLL_LARGE: Final = 8
SMALL: Final = 2_000  # messages in a row of which none is large, before many are polled


class BatchSizer:
    """Sizes the batches and polls of one stream.

    Args:
        messages: of the first batch, at most.
        size: bytes that a batch should have at most, about.
    """

    def __init__(self, messages: int, size: int) -> None:
        self.messages = messages
        self._size = size
        self._most = MOST
        self.poll = POLL_LARGE  # the size of the first messages is not known
        self._small = 0

    def seen(self, messages: int, size: int, large: int = 0) -> bool:
        """Learn from a batch.

        Args:
            messages: its number of messages.
            size: their bytes.
            large: the number of those that are too large for Spark to carry.

        Returns:
            Whether `messages` has changed.
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
        """Learn that a batch did not fit: no later one has so many messages.

        Returns:
            Whether `messages` has changed; if not, there is no smaller one.
        """
        self._most = max(1, self.messages // SHRINK)
        return self._change(self._most)

    def _change(self, messages: int) -> bool:
        changed = messages != self.messages
        self.messages = messages
        return changed
