"""When a target that is behind will have caught up, as far as the last half minute tells. Pure.

Events are counted, not rows: how many rows are behind nobody knows who has not read them. So the estimate is right for
a log of about even events, and moves where a part of the log has larger ones.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

WINDOW: Final = 30.0  # seconds
FOLLOWING: Final = 1.0  # seconds' work that is behind at any time: in flight, not to be caught up with


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen at one moment.

    Args:
        at: seconds, of any clock that only goes forward.
        applied: the target's last seqno.
        newest: the log's last finished seqno.
    """

    at: float
    applied: int
    newest: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What samples tell.

    Args:
        behind: events.
        applied: per second.
        published: per second.
    """

    behind: int
    applied: float
    published: float

    @property
    def seconds(self) -> float | None:
        """Until nothing is behind at these rates; None: never, or nobody can tell."""
        if not self.behind:
            return 0.0
        if not self.applied:
            return None
        if self.behind <= self.applied * FOLLOWING:
            return self.behind / self.applied
        closing = self.applied - self.published
        return self.behind / closing if closing > 0 else None


class CatchUp:
    """Samples of the last half minute, and what they tell.

    Args:
        window: seconds for which a sample counts.
    """

    def __init__(self, window: float = WINDOW) -> None:
        self._window = window
        self._samples: deque[Sample] = deque()

    @property
    def span(self) -> float:
        """Seconds between the oldest sample that counts and the newest one."""
        return self._samples[-1].at - self._samples[0].at if self._samples else 0.0

    def seen(self, sample: Sample) -> None:
        """Take a sample; one whose target went back (another one, or rewound) makes the earlier ones worthless."""
        if self._samples and sample.applied < self._samples[-1].applied:
            self._samples.clear()
        self._samples.append(sample)
        while self.span > self._window:
            self._samples.popleft()

    def estimate(self) -> Estimate | None:
        """What they tell; None before the first."""
        if not self._samples:
            return None
        first, last = self._samples[0], self._samples[-1]
        seconds = last.at - first.at
        return Estimate(
            behind=max(last.newest - last.applied, 0),
            applied=(last.applied - first.applied) / seconds if seconds > 0 else 0.0,
            published=max(last.newest - first.newest, 0) / seconds if seconds > 0 else 0.0,
        )
