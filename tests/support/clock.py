"""How long tests wait, and a clock for tests of waiting code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Seconds until a wait is given up. What comes ends it at once, so only what is broken costs the time; a machine that is
# busy with other things has been seen to need a minute where it takes two seconds alone.
PATIENCE: Final = 240.0


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
