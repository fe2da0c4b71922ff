"""The desk's session with a PostgreSQL target."""

from __future__ import annotations

from collections.abc import Sequence

from connector.targets.operations import Value
from connector.targets.postgres.connection import connect
from connector.targets.postgres.errors import translated


class PostgresSession:
    """See `connector.targets.signal_table.Session`.

    Args:
        url: as libpq takes it.
    """

    prefix = "thl."

    def __init__(self, url: str) -> None:
        with translated():
            self._db = connect(url, "thl desk")

    def run(self, sql: str, values: Sequence[Value]) -> list[tuple[object, ...]]:
        """Run one statement."""
        with translated():
            cursor = self._db.execute(sql.replace("?", "%s").encode(), values)
            return cursor.fetchall() if cursor.description else []

    def has(self, table: str) -> bool:
        """Whether there is a table."""
        return self.run("SELECT to_regclass(?)", (f"thl.{table}",)) != [(None,)]

    def close(self) -> None:
        """End the session."""
        self._db.close()
