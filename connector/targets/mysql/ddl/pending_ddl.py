"""The DDL of the next commit that is not executed yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pymysql

from connector.errors import ConnectorError, TargetUnavailable
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.ddl.plan import located
from connector.targets.mysql.ddl.once import DdlOnce
from connector.targets.mysql.ddl.operations import DdlStep, steps_of
from connector.targets.mysql.ddl.source_ddl import PlannedDdl, source_steps
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.errors import connector_error
from connector.targets.target_schema import TargetSchema


class PendingDdl:
    """The DDL of the next commit that is not executed yet: rows of the event, or the commit, have it executed.

    Args:
        session: the applier's.
        of_source: statements are executed as the source executed them.
        executes_statements: as of `source_steps`.
    """

    def __init__(self, session: ServerSession, *, of_source: bool, executes_statements: bool = False) -> None:
        self._session = session
        self._of_source = of_source
        self._executes_statements = executes_statements
        self._planned: list[PlannedDdl] = []
        self._seqno = 0

    def __len__(self) -> int:
        """The number of planned statements."""
        return len(self._planned)

    def add(self, seqno: int, planned: Iterable[PlannedDdl]) -> None:
        """Add statements of an event."""
        self._planned += planned
        self._seqno = seqno

    def run(self, once: DdlOnce) -> None:
        """Execute the statements, each once. That commits: no rows may be there before them.

        Raises:
            ConnectorError: one is refused; with event, statement and ways out.
            pymysql.MySQLError: the session is lost.
        """
        steps: list[DdlStep] = []
        origins: list[tuple[Statement | None, TargetSchema]] = []
        existed = partial(once.existed, self._seqno)
        for planned in self._planned:
            if self._of_source:
                found = self._source_steps(planned, existed)
            else:
                found = steps_of(planned.operations, self._session, existed)
            steps += found
            origins += [(planned.statement, planned.before)] * len(found)
        done: list[DdlStep] = []
        try:
            once.run(self._seqno, steps, done)
        except (ConnectorError, pymysql.MySQLError) as failure:
            error = failure if isinstance(failure, ConnectorError) else connector_error(failure)
            statement, before = origins[min(len(done), len(origins) - 1)]
            if statement is None or isinstance(error, TargetUnavailable):
                raise
            raise located(error, self._seqno, statement, before) from failure
        self._planned.clear()

    def _source_steps(self, planned: PlannedDdl, existed: Callable[[TableName], bool]) -> list[DdlStep]:
        try:
            return source_steps(planned, self._session, existed, executes_statements=self._executes_statements)
        except ConnectorError as error:
            if planned.statement is None:
                raise
            raise located(error, self._seqno, planned.statement, planned.before) from error

    def forget(self) -> None:
        """Forget what is planned."""
        self._planned.clear()
