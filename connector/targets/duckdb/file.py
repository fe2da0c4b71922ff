"""A DuckDB file: opened when it is needed, and lent to other processes between commits.

DuckDB locks a file for the process that writes it; meanwhile no other process can even read it. So the applier closes
the file after a commit, as often as that costs it a twentieth of its time at most, stays out for a moment, and opens it
for the next one. Others come in by trying again; while they have it open, the applier waits.

The lock is one of POSIX: it is gone as soon as this process opens the file by other means and closes that. So nothing
here does; sessions of one process share DuckDB's one instance of the file, which it finds by the resolved path.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock, Timer
from typing import Final

import duckdb

from connector.clock import Clock
from connector.log.transaction.layout import TableName
from connector.targets.duckdb.errors import connector_error, held, is_locked, is_shared
from connector.targets.duckdb.names import table_name
from connector.targets.names import quoted
from connector.targets.operations import Value

LOG: Final = logging.getLogger(__name__)

WAIT_SECONDS: Final = 30.0
SHARE: Final = 20
"""The file stays open this many times as long as it takes to close and open it."""

HAS: Final = """
SELECT 1 FROM information_schema.tables
WHERE table_catalog = current_catalog() AND table_schema = 'thl' AND table_name = ?
"""
_PRIVATE: Final = Lock()  # a umask is the process's
_PAUSE: Final = 0.01  # seconds between two attempts to open it
_GRACE: Final = 0.05  # seconds that a lent file stays closed: enough for two attempts of others


@dataclass(frozen=True, slots=True)
class FileSession:
    """A session with an open file, in autocommit until BEGIN.

    Args:
        connection: DuckDB's.
        catalog: the name that DuckDB gives the file.
    """

    connection: duckdb.DuckDBPyConnection
    catalog: str

    def run(self, sql: str, values: Sequence[Value] = ()) -> list[tuple[object, ...]]:
        """Run a statement; return its rows."""
        return self.connection.execute(sql, list(values)).fetchall() if values else self._rows(sql)

    def count(self, sql: str) -> int:
        """Run a statement that changes rows; return their number."""
        ((number,),) = self._rows(sql)
        return int(str(number))

    def name(self, table: TableName) -> str:
        """The quoted name of a table of the source, with catalogue and schema."""
        return table_name(self.catalog, table)

    def has(self, name: str) -> bool:
        """True if there is a table or view of this name among the bookkeeping."""
        return bool(self.run(HAS, (name,)))

    @property
    def bookkeeping(self) -> str:
        """The prefix of the bookkeeping's tables."""
        return f"{quoted(self.catalog)}.thl."

    def _rows(self, sql: str) -> list[tuple[object, ...]]:
        return self.connection.execute(sql).fetchall()


class DuckDbFile:
    """A file that one session of this process has open, or none.

    Args:
        path: the file; created when it is opened.
        clock: for waiting, and for how long the file is open.
        wait: seconds to wait for other processes to close it.
    """

    def __init__(self, path: Path, clock: Clock, *, wait: float = WAIT_SECONDS) -> None:
        self.path = path.resolve()
        self._clock = clock
        self._wait = wait
        self._session: FileSession | None = None
        self._opened_at = self._cost = 0.0
        self._lock = RLock()  # between the one thread that uses the file and the timer that closes it
        self._used = False
        self._lent_until = 0.0
        self._timer: Timer | None = None

    @property
    def session(self) -> FileSession:
        """The session. Opens the file if it is closed.

        Raises:
            TargetUnavailable: another process has it open.
            PreflightError: it is no file of DuckDB, or this user may not write it.
        """
        with self._lock:
            self._used = True
            if self._session is None:
                if (grace := self._lent_until - self._clock.monotonic()) > 0:
                    self._clock.sleep(grace)
                connection = self._connected()
                began = self._clock.monotonic()
                ((catalog,),) = connection.execute("SELECT current_catalog()").fetchall()
                self._session = FileSession(connection, str(catalog))
                self._opened_at = self._clock.monotonic()
                self._cost += self._opened_at - began
            return self._session

    @contextmanager
    def private(self) -> Iterator[None]:
        """Create files beside the file with its mode, and a new file for its owner alone."""
        with _PRIVATE:
            mode = self.path.stat().st_mode if self.path.exists() else 0o600
            before = os.umask(~mode & 0o777)
            try:
                yield
            finally:
                os.umask(before)

    def lend(self) -> None:
        """Close the file until it is needed again: at once if it was open long enough, or else as soon as it was."""
        with self._lock:
            self._used = False
            if self._session is None:
                return
            remaining = self._opened_at + SHARE * self._cost - self._clock.monotonic()
            if remaining <= 0:
                self._close()
                self._lent_until = self._clock.monotonic() + _GRACE
            elif self._timer is None:
                self._timer = Timer(remaining, self._close_unused)
                self._timer.daemon = True
                self._timer.start()

    def close(self) -> None:
        """Close the file; an open transaction is rolled back. May be repeated."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._close()

    def _close_unused(self) -> None:
        with self._lock:
            self._timer = None
            if not self._used:
                self._close()

    def _close(self) -> None:
        if self._session is not None:
            began = self._clock.monotonic()
            with self.private():
                self._session.connection.close()
            self._session = None
            self._cost = self._clock.monotonic() - began

    def _connected(self) -> duckdb.DuckDBPyConnection:
        deadline = self._clock.monotonic() + self._wait
        waited = False
        while True:
            began = self._clock.monotonic()
            try:
                with self.private():
                    connection = duckdb.connect(str(self.path))
            except duckdb.Error as error:
                if not is_locked(error) and not is_shared(error):
                    raise connector_error(error, self.path) from error
                if self._clock.monotonic() > deadline:
                    raise held(error, self.path) from error
                if not waited:
                    LOG.info("waiting for another process to close the file", extra={"why": held(error, self.path)})
                waited = True
                self._clock.sleep(_PAUSE)
            else:
                self._cost += self._clock.monotonic() - began
                return connection


@contextmanager
def opened_to_read(path: Path, clock: Clock, *, wait: float = WAIT_SECONDS) -> Iterator[FileSession]:
    """Open an existing file to read it, for a short time: while others read it, no applier can write.

    Raises:
        TargetUnavailable: another process has it open.
        PreflightError: it is no file of DuckDB, or this user may not read it.
    """
    path = path.resolve()
    deadline = clock.monotonic() + wait
    while True:
        try:
            try:
                connection = duckdb.connect(str(path), read_only=True)
            except duckdb.ConnectionException:  # an applier in this process has it open
                connection = duckdb.connect(str(path))
        except duckdb.Error as error:
            if not is_locked(error):
                raise connector_error(error, path) from error
            if clock.monotonic() > deadline:
                raise held(error, path) from error
            clock.sleep(_PAUSE)
        else:
            break
    try:
        ((catalog,),) = connection.execute("SELECT current_catalog()").fetchall()
        yield FileSession(connection, str(catalog))
    finally:
        connection.close()
