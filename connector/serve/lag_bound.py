"""Bounds the lags of a service that is read again and again.

`thl status` reads once: its lag is the age of the last event of producer or applier while others are missing. On a
source that was idle for hours that is hours, for the moment that the first new event needs. A reader who has seen
before that nothing was missing knows better: what is missing is younger than that reading. Pure.
"""

from __future__ import annotations


class LagBound:
    """The bound of one lag."""

    def __init__(self) -> None:
        self._seqno = -1
        self._complete_at: float | None = None

    def bounded(self, at: float, seqno: int, lag: float | None, complete_at: float | None) -> float | None:
        """Return a lag, or the time since nothing was missing where that is shorter.

        Args:
            at: when the lag was read, in seconds of a monotonic clock.
            seqno: the last event. One that is smaller than before was taken back, or is of another log.
            lag: in seconds; None: unknown.
            complete_at: a time at which the source had nothing that is missing now; None: something is missing, or
                that is not known.
        """
        if seqno < self._seqno:
            self._complete_at = None
        self._seqno = seqno
        if complete_at is not None:
            self._complete_at = complete_at
        return lag if lag is None or self._complete_at is None else min(lag, at - self._complete_at)
