"""The transaction of the next commit."""

from __future__ import annotations

from connector.errors import Unsupported
from connector.log.transaction.layout import TableName
from connector.targets.mysql.fence import check_token
from connector.targets.mysql.server.connection import ServerSession


class OpenTransaction:
    """The transaction of the next commit: it begins with the first rows, or with the commit itself.

    Args:
        session: the applier's.
        service: the service.

    Attributes:
        is_open: true if it has begun.
        written: the tables with rows in it.
    """

    def __init__(self, session: ServerSession, service: str) -> None:
        self._session = session
        self._service = service
        self.is_open = False
        self.written: set[TableName] = set()

    def begin(self, token: int) -> None:
        """Begin it, unless it is open.

        Raises:
            Fenced: the target has another token than the applier's.
        """
        if not self.is_open:
            self._session.query("START TRANSACTION")
            check_token(self._session, self._service, token)
            self.is_open = True

    def check_absent(self) -> None:
        """Check that it has not begun: DDL would commit it.

        Raises:
            Unsupported: it has.
        """
        if self.is_open:
            raise Unsupported("DDL comes after rows of the same commit: MySQL would commit these before it")

    def commit(self) -> None:
        """Commit it."""
        self._session.query("COMMIT")
        self._forget()

    def rollback(self) -> None:
        """Roll it back if it has begun.

        Raises:
            TargetDiffers: a table has no transactions.
        """
        if self.is_open:
            self._session.roll_back()
        self._forget()

    def _forget(self) -> None:
        self.is_open = False
        self.written.clear()
