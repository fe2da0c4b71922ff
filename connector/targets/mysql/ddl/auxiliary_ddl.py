"""DDL that the applier needs besides the log's: indexes by which it finds rows, and tables of marks.

MySQL commits it by itself. It runs before the first rows of a commit or after the commit; a crash in between leaves
nothing but an index that is not there yet, or an unused table of marks, which `thl_unused` names.
"""

from __future__ import annotations

from connector.log.compact.net_changes import NetChanges
from connector.targets.mysql.ddl.operations import steps_of
from connector.targets.mysql.rows.marks import create_marks
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.sql.literals import literal
from connector.targets.mysql.sql.names import own
from connector.targets.operations import IndexKey
from connector.targets.staged_schema import StagedSchema
from connector.targets.table import Table
from connector.targets.unique_key_index import UniqueKeyIndex


class AuxiliaryDdl:
    """Creates indexes by which rows are found, and creates and drops tables of marks.

    Args:
        session: the applier's.
        service: the service.
    """

    def __init__(self, session: ServerSession, service: str) -> None:
        self._session = session
        self._service = service
        self._unique_key_indexes = UniqueKeyIndex()
        self._later: list[IndexKey] = []  # to create after the commit

    def find_by(self, net: NetChanges, table: Table, *, in_transaction: bool) -> None:
        """Create the index by which the rows of these changes are found, if the table lacks it.

        Args:
            net: the changes.
            table: their table.
            in_transaction: the index would commit rows: it comes after the commit.
        """
        index = self._unique_key_indexes.missing(net, table)
        if index is None:
            return
        if in_transaction:
            self._later.append(index)
        else:
            self._create(index)

    def _create(self, index: IndexKey) -> None:
        for step in steps_of([index], self._session):
            self._session.query(step.sql)

    def create_marks(self, schema: StagedSchema) -> None:
        """Create the tables of marks that the commit needs; they are empty, so nothing depends on them yet."""
        for name, table in schema.changed_marks()[1]:
            for statement in create_marks(name, table, mariadb=self._session.mariadb):
                self._session.query(statement)

    def unused(self, schema: StagedSchema) -> list[str]:
        """The statements that record the tables of marks that are not needed after the commit."""
        return [
            f"REPLACE INTO thl.thl_unused VALUES ({literal(self._service)}, {literal(marks)})"
            for marks in schema.changed_marks()[0]
        ]

    def after_commit(self, *, unused: bool) -> None:
        """Create the indexes that had to wait; drop tables of marks if there are unused ones."""
        indexes = list(self._later)
        self._later.clear()
        for index in indexes:
            self._create(index)
        if unused:
            self.drop_unused()

    def drop_unused(self) -> None:
        """Drop the tables of marks that are not needed any more."""
        where = f"service = {literal(self._service)}"
        for (name,) in self._session.rows(f"SELECT name FROM thl.thl_unused WHERE {where}"):
            self._session.query(f"DROP TABLE IF EXISTS {own(str(name))}")
            self._session.query(f"DELETE FROM thl.thl_unused WHERE {where} AND name = {literal(str(name))}")

    def definitions_changed(self) -> None:
        """Forget which indexes were asked for."""
        self._unique_key_indexes.forget()

    def forget(self) -> None:
        """Forget what waits for the commit."""
        self._unique_key_indexes.forget()
        self._later.clear()
