"""How many messages Spark is to hand over at once: as many as fit in a batch's bytes.

Spark counts messages, memory counts bytes, and a message is anything from 300 bytes of a short transaction to 64 KiB
of a long one. So the number follows the size of what comes. Changing it means starting the query again (some 0.1 s),
so it is changed only when far off, and only by what full batches tell: one that is not full ended at the log's end.

The same of a poll: what it has unpacked is in the heap, of each partition, and that can be a thousand times what was on
the wire. Where messages are large it takes few. Else many: Spark seeks before each, and what else was fetched is lost
(with 16 small ones a poll, half the rate).
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
    """The number, and when it changes.

    Args:
        messages: to begin with.
        size: bytes that a batch should have at most, about.
    """

    def __init__(self, messages: int, size: int) -> None:
        self.messages = messages
        self._size = size
        self._most = MOST
        self.poll = POLL_LARGE  # nobody knows what comes first
        self._small = 0

    def seen(self, messages: int, size: int, large: int = 0) -> bool:
        """Learn from a batch.

        Args:
            messages: how many it has.
            size: their bytes.
            large: how many of them are too large for Spark to carry.

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
        """A batch did not fit at all: none is to have so many messages again.

        Returns:
            Whether `messages` has changed; if not, there is no smaller one.
        """
        self._most = max(1, self.messages // SHRINK)
        return self._change(self._most)

    def _change(self, messages: int) -> bool:
        changed = messages != self.messages
        self.messages = messages
        return changed
