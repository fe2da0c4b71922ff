"""The lags of the last hours: one point a minute, in bounded memory, and in a file if one is named.

The file has one JSON object a line, so that a line which was cut by a crash loses one point. It is written again when
it has twice as many lines as are kept.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

from connector.private_files import open_new, open_to_append

LOG: Final = logging.getLogger("connector.serve")
WIDTH: Final = 60  # seconds of a point
PRODUCER: Final = "producer"


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
            ValueError, KeyError, TypeError, AttributeError: it is none.
        """
        lag = {str(key): float(value) for key, value in given["lag"].items()}
        return cls(int(given["at"]), lag, {str(key): int(value) for key, value in given["seqno"].items()})


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
        """Take over the points of an earlier process."""
        with self._lock:
            by_minute = {point.at: point for point in points}
            self._points.extend(by_minute[at] for at in sorted(by_minute))

    def keep(self, kind: str, value: Mapping[str, object]) -> None:
        """Keep an object of the service beyond this process, where there is a file."""
        if self._sink is not None:
            self._sink.append(kind, self._service, value)

    def add(self, at: float, lag: Mapping[str, float | None], seqno: Mapping[str, int]) -> None:
        """Add a reading.

        Args:
            at: seconds since 1970 UTC.
            lag: in seconds, of the producer and of each target; None: unknown.
            seqno: the last event of each that is known.
        """
        minute = int(at) // WIDTH * WIDTH
        complete: Point | None = None
        with self._lock:
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


class HistoryFile:
    """The file of all services' points and comparisons.

    Args:
        path: the file; created if missing, for this user alone.
        most: lines after which it is written again.
    """

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._most = most
        self._lines = 0
        self._lock = Lock()
        self._failed = False

    def read(self, since: float) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Return (kind, service, object) of each line; of points only those from a time on.

        Raises:
            OSError: the file cannot be read.
        """
        if not self._path.exists():
            return
        with self._path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    given = json.loads(line)
                    kind, service, value = str(given["kind"]), str(given["service"]), given["value"]
                    if kind != "point" or Point.parse(value).at >= since:
                        yield kind, service, value
                except (ValueError, KeyError, TypeError, AttributeError):
                    LOG.warning("a line of the history is damaged, and left out", extra={"file": str(self._path)})

    def rewrite(self, kept: Callable[[], Iterable[tuple[str, str, Mapping[str, object]]]]) -> None:
        """Write the file again, with these lines alone.

        Args:
            kept: returns them; called while nothing is appended, so that nothing is lost.

        Raises:
            OSError: it cannot be written.
        """
        temporary = self._path.with_name(self._path.name + ".new")
        with self._lock:
            lines = [_line(*one) for one in kept()]
            with open_new(temporary) as file:
                file.write("".join(lines).encode())
            temporary.replace(self._path)
            self._lines = len(lines)

    def append(self, kind: str, service: str, value: Mapping[str, object]) -> None:
        """Keep an object of a service; an error of the disk is logged."""
        try:
            with self._lock, open_to_append(self._path) as file:
                file.write(_line(kind, service, value).encode())
            self._lines += 1
            self._failed = False
        except OSError as error:
            if not self._failed:
                LOG.warning("the history cannot be written", extra={"file": str(self._path), "reason": error.strerror})
            self._failed = True

    @property
    def full(self) -> bool:
        """True if it has to be written again."""
        return self._lines > self._most


def _line(kind: str, service: str, value: Mapping[str, object]) -> str:
    return json.dumps({"kind": kind, "service": service, "value": value}) + "\n"
