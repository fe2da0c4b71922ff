"""Remembers where the source's binary log ended at earlier readings, and finds how far the log has followed.

On a source that writes all the time no reading sees that nothing is missing: the log's position is read before the end
of the source's log, and moves past filtered transactions every few seconds alone. But once the position has passed the
end that an earlier reading saw, what is missing is younger than that reading.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from connector.log.transaction.position import PositionRecord
from connector.status.collect import has_all
from connector.status.source import SourceView

MOST: Final = 1000  # readings that are remembered: more than an hour at the default interval


class SourceEnds:
    """The ends of the source's binary log that the log has not passed yet, oldest first."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, SourceView]] = deque(maxlen=MOST)

    def passed(self, at: float, source: SourceView | None, position: PositionRecord | None) -> float | None:
        """Add a reading, and return the time of the newest one whose end the log has passed; None: of none more.

        Args:
            at: when the source was read, or earlier, in seconds of a monotonic clock.
            source: what was read; None: it does not answer.
            position: the log's; None: there is none.
        """
        if source is not None:
            self._seen.append((at, source))
        found: float | None = None
        if position is not None:
            while self._seen and has_all(self._seen[0][1], position):
                found = self._seen.popleft()[0]
        return found
