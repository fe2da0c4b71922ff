"""The session for the signal tables of a PostgreSQL target."""

from __future__ import annotations

from collections.abc import Sequence

from connector.targets.operations import Value
from connector.targets.postgres.connection import connect
from connector.targets.postgres.errors import translated


class PostgresSignalSession:
    """A session with the database (`connector.targets.signal_table.SignalSession`).

    Args:
        url: a URL of libpq.
        patience: see `connect`.
    """

    prefix = "thl."

    def __init__(self, url: str, patience: int = 10) -> None:
        with translated():
            self._db = connect(url, "thl signals", patience)

    def run(self, sql: str, values: Sequence[Value]) -> list[tuple[object, ...]]:
        """Run one statement."""
        with translated():
            cursor = self._db.execute(sql.replace("?", "%s").encode(), values)
            return cursor.fetchall() if cursor.description else []

    def has(self, table: str) -> bool:
        """True if the table exists."""
        return self.run("SELECT to_regclass(?)", (f"thl.{table}",)) != [(None,)]

    def close(self) -> None:
        """End the session."""
        self._db.close()
