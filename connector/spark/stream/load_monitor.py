"""Whether little enough comes that each message may be read by itself, or so much that only batches keep up.

Two profiles read the log (see `connector.spark.stream.stream`). A message that is read by itself is there at once but
costs more; a batch costs most of what it costs before the first of its messages. So what comes is counted second by
second. Both ends of the scale lie apart, and the longer it is loud again and again, the longer quiet has to last:
a change of the profile is cheap but not free.
"""

from __future__ import annotations

from typing import Final

WINDOW: Final = 1.0  # seconds that are counted together
QUIET_MESSAGES: Final = 5_000  # a second, and
QUIET_BYTES: Final = 8 << 20  # a second: not more than both is quiet
LOUD: Final = 2  # times as much is loud
BEHIND: Final = 2.0  # seconds' worth of messages; who is so far behind is not at the log's end
FEW: Final = 2_000  # messages, that are never far behind
WINDOWS: Final = 3  # quiet ones in a row, to begin with
MOST_WINDOWS: Final = 60
REFUSED_WINDOWS: Final = 600


class LoadMonitor:
    """Counts what comes.

    Args:
        now: seconds of a clock that never goes back.
    """

    def __init__(self, now: float) -> None:
        self.calm = False
        self._began = now
        self._messages = 0
        self._size = 0
        self._full = False
        self._rate = 0.0
        self._quiet = 0
        self._needed = WINDOWS

    def seen(self, now: float, messages: int = 0, size: int = 0, *, full: bool = False) -> None:
        """Learn of messages that have come, or of none.

        Args:
            now: when.
            messages: how many.
            size: their bytes.
            full: whether there were more than a batch takes.
        """
        self._messages += messages
        self._size += size
        self._full |= full
        passed = now - self._began
        if passed >= WINDOW:
            self._counted(passed)
            self._began, self._messages, self._size, self._full = now, 0, 0, False

    def behind(self, messages: int) -> None:
        """Learn how many messages, at most, the log's end is away."""
        if messages > max(FEW, BEHIND * self._rate):
            self._loud()

    def failed(self) -> None:
        """Reading by itself has ended with an error: it is tried again, but not at once."""
        self._loud()

    def refused(self) -> None:
        """Reading by itself does not even begin: it is not tried again soon."""
        self._loud()
        self._quiet = -REFUSED_WINDOWS

    def _counted(self, passed: float) -> None:
        self._rate = self._messages / passed
        size = self._size / passed
        if self._full or self._rate > LOUD * QUIET_MESSAGES or size > LOUD * QUIET_BYTES:
            self._loud()
        elif self._rate <= QUIET_MESSAGES and size <= QUIET_BYTES:
            self._quiet += 1
            self.calm = self.calm or self._quiet >= self._needed
            if self._quiet >= MOST_WINDOWS:
                self._needed = WINDOWS
        else:
            self._quiet = min(self._quiet, 0)

    def _loud(self) -> None:
        if self.calm:
            self._needed = min(2 * self._needed, MOST_WINDOWS)
        self.calm = False
        self._quiet = min(self._quiet, 0)
