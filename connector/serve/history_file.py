"""The file of `serve.history`: the points and comparisons of all services, beyond one process.

It has one JSON object a line, so that a line which was cut by a crash loses one point. It is written again when it has
twice as many lines as are kept. A file that is something else is refused, and stays as it is.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Final

from connector.config.serve import Serve
from connector.errors import ConfigError
from connector.private_files import open_new, open_to_update
from connector.serve.history import DAMAGED, WIDTH, Comparison, Point
from connector.serve.services import ServedService
from connector.serve.watcher import Watcher

LOG: Final = logging.getLogger("connector.serve")
LONGEST: Final = 1 << 20  # characters of a line
BEGIN: Final = b'{"kind": '  # of each line


class HistoryFile:
    """A history's file.

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


def history_file(services: Sequence[ServedService], settings: Serve) -> HistoryFile | None:
    """Return the file of `serve.history`; None: there is none."""
    points = max(int(settings.history_hours * 3600 / WIDTH), 1)
    return None if settings.history is None else HistoryFile(settings.history, 2 * points * len(services))


@contextmanager
def usable(settings: Serve) -> Iterator[None]:
    """Raise ConfigError for an error of the history's file."""
    try:
        yield
    except OSError as error:
        raise ConfigError.of_fields(
            f"the file of the history cannot be used: {error.strerror}",
            {"serve.history": str(settings.history)},
            hint="let serve.history name a file of its own that this user may write, or none",
        ) from error


def restore(file: HistoryFile, watchers: Sequence[Watcher], since: float, until: float) -> None:
    """Give watchers what the file has of their services; points only those of a time.

    Args:
        file: the file.
        watchers: of the services.
        since, until: in seconds since 1970 UTC.

    Raises:
        OSError: the file cannot be read, or is no history.
    """
    points: dict[str, dict[int, Point]] = {watcher.service.name: {} for watcher in watchers}
    by_name = {watcher.service.name: watcher for watcher in watchers}
    for kind, service, value in file.read(since, until):
        if kind == "point" and service in points:
            point = Point.parse(value)
            points[service][point.at] = point
        elif kind == "comparison" and service in by_name:
            try:
                comparison = Comparison.parse(value)
            except DAMAGED:
                continue
            by_name[service].comparisons[comparison.target] = comparison
    for name, found in points.items():
        by_name[name].history.restore(found.values())


def rewrite(file: HistoryFile, watchers: Sequence[Watcher]) -> None:
    """Write the file again, with what watchers have.

    Raises:
        OSError: it cannot be written; it is as it was.
    """
    file.rewrite(lambda: _kept(watchers))


def compact(file: HistoryFile, watchers: Sequence[Watcher]) -> None:
    """Write the file again; on a full disk it grows for now."""
    try:
        rewrite(file, watchers)
    except OSError as error:
        LOG.warning("the history cannot be written again, and grows", extra={"why": error.strerror})


def _kept(watchers: Sequence[Watcher]) -> list[tuple[str, str, dict[str, object]]]:
    lines: list[tuple[str, str, dict[str, object]]] = []
    for watcher in watchers:
        name = watcher.service.name
        lines += [("point", name, point.as_object()) for point in watcher.history.points()]
        lines += [("comparison", name, one.as_object()) for one in list(watcher.comparisons.values())]
    return lines
