"""Estimates the time until a target has caught up, from the last 30 seconds. Pure.

It counts events, not rows: the number of rows is unknown until they are read. So the estimate is right for events of
about equal size, and changes where a part of the log has larger ones.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

WINDOW: Final = 30.0  # seconds
IN_FLIGHT: Final = 1.0  # seconds: a lag of less work is not a backlog, but events in flight


@dataclass(frozen=True, slots=True)
class Sample:
    """The progress of target and log at one time.

    Args:
        at: seconds of a monotonic clock.
        applied: the target's last seqno.
        newest: the seqno of the log's last finished event.
    """

    at: float
    applied: int
    newest: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The lag and the rates in the window.

    Args:
        lag: events that are not applied yet.
        applied: applied events per second.
        published: published events per second.
    """

    lag: int
    applied: float
    published: float

    @property
    def seconds(self) -> float | None:
        """Seconds until the lag is zero at these rates; None: never, or unknown."""
        if not self.lag:
            return 0.0
        if not self.applied:
            return None
        if self.lag <= self.applied * IN_FLIGHT:
            return self.lag / self.applied
        closing = self.applied - self.published
        return self.lag / closing if closing > 0 else None


class CatchUp:
    """Samples of the last 30 seconds, and the estimate from them.

    Args:
        window: seconds for which a sample is kept.
        least: the number of samples that are kept also beyond it: 2 for those that come more rarely.
    """

    def __init__(self, window: float = WINDOW, least: int = 1) -> None:
        self._window = window
        self._least = least
        self._samples: deque[Sample] = deque()

    @property
    def span(self) -> float:
        """Seconds between the oldest kept sample and the newest one."""
        return self._samples[-1].at - self._samples[0].at if self._samples else 0.0

    def add(self, sample: Sample) -> None:
        """Add a sample. If its target went back (replaced or rewound), forget the earlier ones."""
        if self._samples and sample.applied < self._samples[-1].applied:
            self._samples.clear()
        self._samples.append(sample)
        while self.span > self._window and len(self._samples) > self._least:
            self._samples.popleft()

    def estimate(self) -> Estimate | None:
        """Return the estimate; None before the first sample."""
        if not self._samples:
            return None
        first, last = self._samples[0], self._samples[-1]
        seconds = last.at - first.at
        return Estimate(
            lag=max(last.newest - last.applied, 0),
            applied=(last.applied - first.applied) / seconds if seconds > 0 else 0.0,
            published=max(last.newest - first.newest, 0) / seconds if seconds > 0 else 0.0,
        )
