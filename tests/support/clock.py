"""A clock for tests of waiting code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Slept:
    """A clock that advances only by sleeping."""

    seconds: float = 0.0

    def now(self) -> int:
        return int(self.seconds * 1e6)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
