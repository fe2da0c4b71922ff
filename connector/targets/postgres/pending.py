"""The work of the next commit in one session: operations and rows of staging tables, in the order of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import psycopg

from connector.errors import ConnectorError
from connector.log.compact.net_changes import NetChanges
from connector.log.transaction.layout import TableLayout, TableName
from connector.targets.marks import Marks
from connector.targets.operations import Operation
from connector.targets.postgres.ddl import run
from connector.targets.postgres.direct_copy import DirectRows
from connector.targets.postgres.merge import LateValues, Step, run_steps
from connector.targets.postgres.staging import Staged, Staging
from connector.targets.table import Table
from connector.targets.unique_key_index import UniqueKeyIndex

Locate = Callable[[ConnectorError], ConnectorError]
"""Adds to the error of an operation where in the log it comes from."""


class PendingWork:
    """The operations and staged rows of the next commit.

    Args:
        session: the session, in autocommit.
        metadata: the number of metadata columns of each table.
    """

    def __init__(self, session: psycopg.Connection, metadata: int) -> None:
        self._session = session
        self._staging = Staging(session, metadata)
        self._items: list[Staged | DirectRows | tuple[Operation, Locate]] = []
        self._last: dict[TableLayout, Staged | DirectRows] = {}  # where further rows may go
        self._unique_key_indexes = UniqueKeyIndex()

    def __len__(self) -> int:
        """The number of operations and staging tables."""
        return len(self._items)

    def work(self) -> list[Staged | Operation]:
        """The operations and staging tables of a commit that was rolled back, in their order."""
        staged = iter(self._staging.rolled_back(item for item in self._items if not isinstance(item, tuple)))
        return [item[0] if isinstance(item, tuple) else next(staged) for item in self._items]

    def stage(self, net: NetChanges, marked: Marks | None = None, *, last: bool) -> None:
        """Stage changes.

        Args:
            net: the changes.
            marked: the marks of the table, if it has some.
            last: true if the commit follows.
        """
        before = self._last.get(net.layout)
        table = self._staging.accept(net, before, marked, last=last)
        if table is not before:
            self._items.append(table)
            self._last[net.layout] = table

    def add(self, operation: Operation, locate: Locate = lambda error: error) -> None:
        """Add an operation."""
        self._items.append((operation, locate))

    def index(self, net: NetChanges, table: Table, locate: Locate) -> None:
        """Add the index by which the rows of these changes are found, if the table lacks it.

        It precedes the table's first rows: PostgreSQL creates no index while a deferred check is pending.
        """
        if (index := self._unique_key_indexes.missing(net, table)) is not None:
            self._items.insert(self._first_rows(table.name), (index, locate))

    def _first_rows(self, name: TableName) -> int:
        """The place of a table's first staged rows."""
        staged = (at for at, item in enumerate(self._items) if not isinstance(item, tuple) and item.layout.name == name)
        return next(staged, len(self._items))

    def set_metadata(self, values: LateValues) -> None:
        """Set the metadata columns of all staged rows."""
        for item in self._items:
            if not isinstance(item, tuple):
                item.set_metadata(values)
        self._last.clear()  # later rows may be of other transactions

    def definitions_changed(self) -> None:
        """Put later rows behind the operations so far."""
        self._last.clear()
        self._unique_key_indexes.forget()

    def run(self, steps: list[Step], last: Iterable[Step] = ()) -> None:
        """Run statements, then what is pending, then the last ones, in as few round trips as operations allow."""
        for item in self._items:
            if not isinstance(item, tuple):
                steps = self._staging.merge(steps, item)
                continue
            run_steps(self._session, steps)
            steps = []
            operation, locate = item
            try:
                run(self._session, operation)
            except ConnectorError as error:
                raise locate(error) from error
        run_steps(self._session, [*steps, *last])

    def committed(self, *, tables: bool) -> None:
        """It is committed; `tables`: layouts have changed: drop the idle staging tables."""
        if tables:
            self._staging.forget()
        self._items.clear()
        self._last.clear()

    def discard(self) -> None:
        """Drop everything."""
        for item in self._items:
            if not isinstance(item, tuple):
                self._staging.drop(item)
        self._items.clear()
        self._last.clear()
        self._unique_key_indexes.forget()
