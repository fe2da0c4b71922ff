"""The session for the signal tables of a SQLite target."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from connector.errors import TargetUnavailable
from connector.targets.operations import Value
from connector.targets.sqlite.errors import translated

WAIT_SECONDS: Final = 30.0  # for an applier's open transaction, before a write


class SqliteSignalSession:
    """A session with the file (`connector.targets.signal_table.SignalSession`).

    Args:
        path: the file.
    """

    prefix = ""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise TargetUnavailable("the target does not exist yet", file=path)
        with translated(path):
            self._db = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                timeout=WAIT_SECONDS,
                check_same_thread=False,
            )

    def run(self, sql: str, values: Sequence[Value]) -> list[tuple[object, ...]]:
        """Run one statement."""
        with translated():
            return self._db.execute(sql, values).fetchall()

    def has(self, table: str) -> bool:
        """True if the table exists."""
        return bool(self.run("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)))

    def close(self) -> None:
        """Close the file."""
        self._db.close()
