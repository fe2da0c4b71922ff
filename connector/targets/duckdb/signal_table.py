"""The session for the signal tables of a DuckDB target.

It opens the file for each statement, because the file is locked while it is open. A query is not asked again before the
file has changed: an applier looks for requests once a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from connector.clock import Clock, SystemClock
from connector.errors import TargetUnavailable
from connector.targets.duckdb.errors import translated
from connector.targets.duckdb.file import HAS, WAIT_SECONDS, DuckDbFile, FileSession, opened_to_read
from connector.targets.operations import Value

Rows = list[tuple[object, ...]]
Stamp = tuple[tuple[int, int], ...]


class DuckDbSignalSession:
    """A session with the file (`connector.targets.signal_table.SignalSession`).

    Args:
        path: the file.
        clock: for waiting.
        wait: seconds to wait for other processes to close it.
    """

    prefix = "thl."

    def __init__(self, path: Path, clock: Clock | None = None, *, wait: float = WAIT_SECONDS) -> None:
        if not path.exists():
            raise TargetUnavailable("the target does not exist yet", file=path)
        self._clock = clock or SystemClock()
        self._wait = wait
        self._file = DuckDbFile(path, self._clock, wait=wait)
        self._found: dict[tuple[str, tuple[Value, ...]], tuple[Stamp, Rows]] = {}

    def run(self, sql: str, values: Sequence[Value]) -> Rows:
        """Run one statement."""
        asked, stamp = (sql, tuple(values)), self._stamp()
        known = self._found.get(asked)
        if known is not None and known[0] == stamp:
            return known[1]
        query = sql.lstrip().startswith("SELECT")
        with translated(), self._opened(query=query) as session:
            found = session.run(sql.replace("thl.", session.bookkeeping), values)  # the file may be called thl, too
        if query:
            self._found[asked] = (stamp, found)
        return found

    def has(self, table: str) -> bool:
        """True if the table exists."""
        return bool(self.run(HAS, (table,)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def _opened(self, *, query: bool) -> Iterator[FileSession]:
        if query:  # as others can at the same time
            with opened_to_read(self._file.path, self._clock, wait=self._wait) as session:
                yield session
            return
        try:
            session = self._file.session
            with self._file.private():
                yield session
        finally:
            self._file.close()

    def _stamp(self) -> Stamp:
        """A value that differs after each commit: the time and size of the file and of its write-ahead log."""
        files = (self._file.path, self._file.path.with_name(f"{self._file.path.name}.wal"))
        stats = [file.stat() for file in files if file.exists()]
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)
