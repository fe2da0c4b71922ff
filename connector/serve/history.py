"""The lags of the last hours, one point a minute in bounded memory, and the comparisons: what `history_file` keeps."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, Protocol

WIDTH: Final = 60  # seconds of a point
PRODUCER: Final = "producer"
DAMAGED: Final = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)  # of a damaged line
_LATEST: Final = 253_402_300_800  # the end of the year 9999, in seconds since 1970 UTC


def target_key(name: str) -> str:
    """The key of a target in points; another one than the producer's, whatever its name."""
    return f"target:{name}"


@dataclass(slots=True)
class Point:
    """A minute.

    Args:
        at: its begin, in seconds since 1970 UTC.
        lag: the largest lag in it, in seconds, of the producer and of each target; none where it was unknown.
        seqno: the last seqno that each of them had.
    """

    at: int
    lag: dict[str, float] = field(default_factory=dict)
    seqno: dict[str, int] = field(default_factory=dict)

    def as_object(self) -> dict[str, object]:
        """The point for JSON."""
        return {"at": self.at, "lag": self.lag, "seqno": self.seqno}

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Point:
        """A point of the file.

        Raises:
            One of DAMAGED: it is none.
        """
        lag = {str(key): float(value) for key, value in given["lag"].items()}
        if not all(math.isfinite(value) and value >= 0 for value in lag.values()):
            raise ValueError("a lag is no number of seconds")
        return cls(int(_time_of(given)), lag, {str(key): int(value) for key, value in given["seqno"].items()})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The last comparison of source and target that is known.

    Args:
        at: seconds since 1970 UTC.
        target: the target's name.
        verdict: equal, different, or not all compared.
    """

    at: float
    target: str
    verdict: str

    def as_object(self) -> dict[str, object]:
        """The comparison for JSON."""
        return {"at": self.at, "target": self.target, "verdict": self.verdict}

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Comparison:
        """A comparison of the file.

        Raises:
            One of DAMAGED: it is none.
        """
        return cls(_time_of(given), str(given["target"]), str(given["verdict"]))


def _time_of(given: Mapping[str, Any]) -> float:
    """Return the time of an object of the file, in seconds since 1970 UTC.

    Raises:
        One of DAMAGED: it has none, or one that no date shows.
    """
    at = float(given["at"])
    if not 0 <= at < _LATEST:
        raise ValueError("at is no time")
    return at


class HistorySink(Protocol):
    """Keeps what has to survive a restart."""

    def append(self, kind: str, service: str, value: Mapping[str, object]) -> None:
        """Keep an object of a service; an error of the disk is logged."""


class LagHistory:
    """The points of a service.

    Args:
        service: name of the service.
        hours: for which points are kept.
        sink: gets each point that is complete; None: nothing is kept beyond this process.
    """

    def __init__(self, service: str, hours: float, sink: HistorySink | None = None) -> None:
        self._service = service
        self._sink = sink
        self._points: deque[Point] = deque(maxlen=max(int(hours * 3600 / WIDTH), 1))
        self._lock = Lock()

    def restore(self, points: Iterable[Point]) -> None:
        """Take over the points of an earlier process, which are of different minutes."""
        with self._lock:
            self._points.extend(sorted(points, key=lambda point: point.at))

    def keep(self, kind: str, value: Mapping[str, object]) -> None:
        """Keep an object of the service beyond this process, where there is a file."""
        if self._sink is not None:
            self._sink.append(kind, self._service, value)

    def add(self, at: float, lag: Mapping[str, float | None], seqno: Mapping[str, int]) -> None:
        """Add a reading. After the clock has gone back, points of later times are dropped.

        Args:
            at: seconds since 1970 UTC.
            lag: in seconds, of the producer and of each target; None: unknown.
            seqno: the last event of each that is known.
        """
        minute = int(at) // WIDTH * WIDTH
        complete: Point | None = None
        with self._lock:
            while self._points and self._points[-1].at > minute:
                self._points.pop()
            newest = self._points[-1] if self._points else None
            if newest is None or newest.at < minute:
                complete = newest
                self._points.append(newest := Point(minute))
            for key, value in lag.items():
                if value is not None:
                    newest.lag[key] = max(value, newest.lag.get(key, 0.0))
            newest.seqno |= seqno
        if complete is not None:
            self.keep("point", complete.as_object())

    def points(self, since: float = 0.0) -> list[Point]:
        """Return copies of the points from a time on, oldest first."""
        with self._lock:
            return [Point(one.at, dict(one.lag), dict(one.seqno)) for one in self._points if one.at + WIDTH > since]
