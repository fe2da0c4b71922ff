"""Counts messages per second, and finds the log busy (only micro-batches keep up) or idle (continuous mode does).

Continuous mode has less latency but costs more per message; a micro-batch has most of its cost before its first message
(see `connector.spark.stream.stream`). The bounds of busy and idle differ, and after each idle phase the next one must
last longer, because a change of the mode is cheap but not free.
"""

from __future__ import annotations

from typing import Final

WINDOW: Final = 1.0  # seconds of a counting window
IDLE_MESSAGES: Final = 5_000  # maximum messages per second of an idle window
IDLE_BYTES: Final = 8 << 20  # maximum bytes per second of an idle window
BUSY: Final = 2  # multiple of the idle limits from which on a window is busy
LAG_SECONDS: Final = 2.0  # a lag of more messages than arrive in these seconds is busy
SMALL_LAG: Final = 2_000  # messages: a smaller lag never counts as busy
WINDOWS: Final = 3  # consecutive idle windows of the first idle phase
MOST_WINDOWS: Final = 60
REFUSED_WINDOWS: Final = 600


class LoadMonitor:
    """Counts messages, and decides if the log is busy or idle.

    Args:
        now: seconds of a monotonic clock.
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
        """Count received messages, or none.

        Args:
            now: seconds of the clock.
            messages: number of messages.
            size: bytes of the messages.
            full: true if there were more than fit in a batch.
        """
        self._messages += messages
        self._size += size
        self._full |= full
        passed = now - self._began
        if passed >= WINDOW:
            self._end_window(passed)
            self._began, self._messages, self._size, self._full = now, 0, 0, False

    def set_lag(self, messages: int) -> None:
        """Set the upper bound of the lag, in messages."""
        if messages > max(SMALL_LAG, LAG_SECONDS * self._rate):
            self._busy()

    def failed(self) -> None:
        """Note that continuous mode ended with an error: the next idle phase must last longer."""
        self._busy()

    def refused(self) -> None:
        """Note that continuous mode could not start: it is not tried again for `REFUSED_WINDOWS`."""
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
