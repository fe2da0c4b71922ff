"""The session for the signal tables of a MySQL target."""

from __future__ import annotations

from collections.abc import Sequence

from connector.log.transaction.layout import TableName
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.errors import translated
from connector.targets.mysql.sql.literals import literal
from connector.targets.mysql.sql.names import BOOKKEEPING, table_condition
from connector.targets.operations import Value


class MySqlSignalSession:
    """A session with the server (`connector.targets.signal_table.SignalSession`).

    Args:
        url: of the target.
        patience: seconds for the server to answer.
    """

    prefix = "thl."

    def __init__(self, url: str, patience: int = 10) -> None:
        self.session = ServerSession(url, "thl signals", patience)

    def run(self, sql: str, values: Sequence[Value]) -> list[tuple[object, ...]]:
        """Run one statement."""
        first, *others = sql.split("?")
        parts = [first]
        for value, other in zip(values, others, strict=True):
            parts += [literal(value), other]
        with translated():
            return self.session.rows("".join(parts))

    def has(self, table: str) -> bool:
        """True if the table exists."""
        where = table_condition(TableName(BOOKKEEPING, table))
        return bool(self.run(f"SELECT 1 FROM information_schema.tables WHERE {where}", ()))

    def close(self) -> None:
        """End the session."""
        self.session.close()
