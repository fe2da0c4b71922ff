"""Counts messages second by second: busy, where only micro-batches keep up, or idle, where each can be read by itself.

A message that is read by itself is there at once but costs more; a micro-batch has most of its cost before its first
message (see `connector.spark.stream.stream`). The two bounds lie apart, and each time that idleness ends it has to
last longer the next time: a change of the mode is cheap but not free.
"""

from __future__ import annotations

from typing import Final

WINDOW: Final = 1.0  # seconds that are counted together
IDLE_MESSAGES: Final = 5_000  # a second, and
IDLE_BYTES: Final = 8 << 20  # a second: a window with no more than both is idle
BUSY: Final = 2  # times as much is busy
LAG_SECONDS: Final = 2.0  # seconds' worth of messages: a larger lag is busy
SMALL_LAG: Final = 2_000  # messages: a lag that never counts
WINDOWS: Final = 3  # idle ones in a row, at first
MOST_WINDOWS: Final = 60
REFUSED_WINDOWS: Final = 600


class LoadMonitor:
    """Counts messages.

    Args:
        now: seconds of a clock that never goes back.
    """

    def __init__(self, now: float) -> None:
        self.idle = False
        self._began = now
        self._messages = 0
        self._size = 0
        self._full = False
        self._rate = 0.0
        self._idle_windows = 0
        self._needed = WINDOWS

    def seen(self, now: float, messages: int = 0, size: int = 0, *, full: bool = False) -> None:
        """Count messages that have come, or none.

        Args:
            now: seconds of the clock.
            messages: their number.
            size: their bytes.
            full: whether there were more than a batch holds.
        """
        self._messages += messages
        self._size += size
        self._full |= full
        passed = now - self._began
        if passed >= WINDOW:
            self._end_window(passed)
            self._began, self._messages, self._size, self._full = now, 0, 0, False

    def behind(self, messages: int) -> None:
        """Learn the lag behind the log's end, in messages, at most."""
        if messages > max(SMALL_LAG, LAG_SECONDS * self._rate):
            self._busy()

    def failed(self) -> None:
        """Continuous mode has ended with an error: the next idle phase has to last longer."""
        self._busy()

    def refused(self) -> None:
        """Continuous mode could not start: it is not tried again for `REFUSED_WINDOWS`."""
        self._busy()
        self._idle_windows = -REFUSED_WINDOWS

    def _end_window(self, passed: float) -> None:
        self._rate = self._messages / passed
        size = self._size / passed
        if self._full or self._rate > BUSY * IDLE_MESSAGES or size > BUSY * IDLE_BYTES:
            self._busy()
        elif self._rate <= IDLE_MESSAGES and size <= IDLE_BYTES:
            self._idle_windows += 1
            self.idle = self.idle or self._idle_windows >= self._needed
            if self._idle_windows >= MOST_WINDOWS:
                self._needed = WINDOWS
        else:
            self._idle_windows = min(self._idle_windows, 0)

    def _busy(self) -> None:
        if self.idle:
            self._needed = min(2 * self._needed, MOST_WINDOWS)
        self.idle = False
        self._idle_windows = min(self._idle_windows, 0)
