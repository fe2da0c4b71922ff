"""The clock: nothing else asks the machine for the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Gives the time to every room; tests give their own."""

    def now(self) -> int:
        """Microseconds since 1970 UTC."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never go back."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """Microseconds since 1970 UTC."""
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
