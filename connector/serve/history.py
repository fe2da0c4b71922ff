"""The lags of the last hours: one point a minute, in bounded memory, and in a file if one is named.

The file has one JSON object a line, so that a line which was cut by a crash loses one point. It is written again when
it has twice as many lines as are kept. A file that is something else is refused, and stays as it is.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import math
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Final, Protocol

from connector.private_files import open_new, open_to_update

LOG: Final = logging.getLogger("connector.serve")
WIDTH: Final = 60  # seconds of a point
PRODUCER: Final = "producer"
LONGEST: Final = 1 << 20  # characters of a line of the file
BEGIN: Final = b'{"kind": '  # of each line of the file
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

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from the file while in the context.

        Raises:
            OSError: another process has it, or its folder cannot be written.
        """
        with open_to_update(self._path.with_name(self._path.name + ".lock")) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OSError(error.errno, "another thl serve uses it") from error
            yield

    def read(self, since: float, until: float) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Return (kind, service, object) of each line; of points only those of a time.

        Args:
            since, until: in seconds since 1970 UTC.

        Raises:
            OSError: the file cannot be read, or is no history.
        """
        damaged = 0
        with self._opened() as file:
            while line := file.readline(LONGEST):
                try:
                    given = json.loads(line.decode())
                    kind, service, value = str(given["kind"]), str(given["service"]), given["value"]
                    if kind != "point" or since <= Point.parse(value).at <= until:
                        yield kind, service, value
                except DAMAGED:
                    damaged += 1
        if damaged:
            LOG.warning(
                "lines of the history are damaged, and left out", extra={"file": str(self._path), "lines": damaged}
            )

    def _opened(self) -> BinaryIO:
        """Open the file for reading.

        Raises:
            OSError: it cannot be read, or is something else, which must not be replaced.
        """
        try:
            # Without waiting for the writer of a pipe.
            file = os.fdopen(os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        except FileNotFoundError:
            return BytesIO()
        begin = file.read(len(BEGIN)) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b"?"
        if not BEGIN.startswith(begin):
            file.close()
            raise OSError(errno.EINVAL, "it is something else than a history of thl serve, and stays as it is")
        file.seek(0)
        return file

    def rewrite(self, kept: Callable[[], Iterable[tuple[str, str, Mapping[str, object]]]]) -> None:
        """Write the file again, with these lines alone.

        Args:
            kept: returns them; called while nothing is appended, so that nothing is lost.

        Raises:
            OSError: it cannot be written; it is as it was.
        """
        temporary = self._path.with_name(self._path.name + ".new")
        with self._lock:
            lines = [_line(*one) for one in kept()]
            with open_new(temporary) as file:
                file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
            self._lines = len(lines)

    def append(self, kind: str, service: str, value: Mapping[str, object]) -> None:
        """Keep an object of a service; an error of the disk is logged."""
        try:
            with self._lock:
                with open_to_update(self._path) as file:
                    # A line that a full disk has cut off must not take the next one with it.
                    size = file.seek(0, os.SEEK_END)
                    cut = size and file.seek(size - 1) and file.read(1) != b"\n"
                    file.write(b"\n" * bool(cut) + _line(kind, service, value).encode())
                self._lines += 1
            self._failed = False
        except OSError as error:
            if not self._failed:
                LOG.warning("the history cannot be written", extra={"file": str(self._path), "why": error.strerror})
            self._failed = True

    @property
    def full(self) -> bool:
        """True if it has to be written again."""
        return self._lines > self._most


def _line(kind: str, service: str, value: Mapping[str, object]) -> str:
    return json.dumps({"kind": kind, "service": service, "value": value}) + "\n"
