"""Which events of the log are listed."""

from __future__ import annotations

from dataclasses import dataclass

from connector.thl.words import Seqno


@dataclass(frozen=True, slots=True)
class Choice:
    """A range of seqnos, both ends included.

    Args:
        low, high: None: from the first, to the last.
        first, last: so many at the log's beginning, or at its end; over `low` and `high`.
        voided: also what was given up, and what is not finished yet.
    """

    low: int | None = None
    high: int | None = None
    first: int | None = None
    last: int | None = None
    voided: bool = False

    def bounds(self, oldest: Seqno, newest: Seqno) -> tuple[int, int]:
        """The range, for a log that holds events from `oldest` to `newest`."""
        low = oldest if self.low is None else self.low
        high = newest if self.high is None else self.high
        if self.first is not None:
            low, high = oldest, oldest + self.first - 1
        if self.last is not None:
            low, high = newest - self.last + 1, newest
        # What was given up bears numbers up to the one that comes next.
        return low, high if (self.high, self.first) != (None, None) or not self.voided else newest + 1
