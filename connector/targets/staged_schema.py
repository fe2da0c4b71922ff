"""The schema of a target during a commit: as the last commit left it, and after the staged changes.

The row changes of excluded tables are counted here, too. A commit adds them to the bookkeeping by its own statement, so
that a running exclusion costs no new schema; the schemas get them before an exclusion is renamed or ends.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from connector.errors import TargetDiffers
from connector.log.compact.history import HistoryTables
from connector.log.compact.net_changes import Ddl, NetChanges
from connector.log.ids import Seqno
from connector.log.transaction.layout import Column, TableName
from connector.targets.histories import check_source_table, create_histories, statement_rows
from connector.targets.operations import CreateTable, DropTable
from connector.targets.table import Table
from connector.targets.target_schema import (
    QUARANTINED,
    Excluded,
    Loading,
    TargetSchema,
    changed,
    exclusions,
    loads,
    marks,
)

LOG: Final = logging.getLogger(__name__)


class StagedSchema:
    """The tables and exclusions of an applier's target, and what the next commit changes of them.

    Args:
        history: the tables that have a history; None: there are none.

    Attributes:
        tables: the schema after the staged changes.
        uncounted: row changes of excluded tables since the last commit.
        repaired: the table whose rows the next commit repairs; None: it is no repair.
    """

    def __init__(self, history: HistoryTables | None = None) -> None:
        self._history = history
        self._statements: dict[TableName, list[str]] = {}  # of an event, by the tables with a history that they change
        self.tables = TargetSchema()
        self.uncounted = Counter[TableName]()
        self.repaired: TableName | None = None
        self._refused_repair: TableName | None = None  # the table whose repair the next commit leaves out
        self._saved = TargetSchema()  # as the last commit left it
        self._counted = Counter[TableName]()  # of earlier commits, not yet in the schemas

    @property
    def has_changed(self) -> bool:
        """True if the next commit changes tables or exclusions."""
        return self._saved is not self.tables

    def claimed(self, tables: TargetSchema) -> None:
        """Start from the schema that the target's bookkeeping has."""
        self.tables = self._saved = tables
        self._counted.clear()
        self.uncounted.clear()

    def leaves_out(self, net: NetChanges) -> bool:
        """Return true if changes are not applied; count them if their table is excluded, but not in a replay.

        A history has no changes of an excluded table, and all those during a load, also if the table waits for others.

        Raises:
            ConfigError: they are of a table of the source with a history's name.
        """
        name, history = net.source_table, net.history_of is not None
        if name == self._refused_repair:
            return True
        if name in self.tables.loading:
            return self.tables.loading[name].awaits and not history
        if name not in self.tables.excluded:
            if not history:
                check_source_table(self.tables, name)
            return False
        if not net.again and not history:
            self.uncounted[name] += net.changes
        return True

    def create_histories(self, tables: TargetSchema) -> tuple[tuple[CreateTable, ...], TargetSchema]:
        """The operations that create the histories that tables lack, and the schema after; see `histories`."""
        return create_histories(tables, self._history)

    def note_statements(self, statements: Iterable[tuple[str, Iterable[TableName]]]) -> None:
        """Note statements for the histories of the tables that each changes, by all their names."""
        if self._history is None:
            return
        for sql, tables in statements:
            for name in filter(self._history.finds, dict.fromkeys(tables)):
                self._statements.setdefault(name, []).append(sql)

    def statement_rows(self, ddl: Ddl) -> list[NetChanges]:
        """Drain the rows that an event's statements have in histories, after the last one."""
        statements, self._statements = self._statements, {}
        return statement_rows(ddl, statements, self.tables)

    def repair(self, name: TableName, check: Callable[[Table], None]) -> None:
        """Begin the repair of a table, with the next commit. What the target refuses is left out, and logged.

        Args:
            name: the table.
            check: checks that its rows may be deleted and inserted again; raises TargetDiffers if not.
        """
        table = self.tables.find(name)
        try:
            if table is not None and name not in self.tables.excluded:
                check(table)
            self.repaired = name
        except TargetDiffers as error:
            self._refused_repair = name
            LOG.warning("a repair is left out", extra={"table": name, "why": error.located})

    def marks(self, name: TableName) -> str | None:
        """The name of the marks of a table; "" if it is repaired, None if it has no marks for another reason."""
        entry = self.tables.loading.get(name)
        if entry is not None:
            return entry.marks or None
        return "" if name == self.repaired else None

    def add_counts(self) -> None:
        """Add the counts to the schemas, before an exclusion gets another name or ends."""
        if self._counted:
            same = not self.has_changed
            self._saved = self._saved.counted(self._counted)
            self.tables = self._saved if same else self.tables.counted(self._counted)
            self._counted.clear()

    def begin_snapshot(self, columns: tuple[Column, ...], first: Seqno) -> tuple[DropTable, ...]:
        """Change to the schema at the start of an initial load (`TargetSchema.at_snapshot`).

        Returns:
            The drops of all tables of the applier but histories; of an excluded one a user may have dropped it.
        """
        self.add_counts()
        before = self.tables
        self.tables = before.at_snapshot(columns, first)
        dropped = (table for table in before if table.history_of is None)
        return tuple(DropTable(table, optional=table.name in before.excluded) for table in dropped)

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        """Exclude tables. An older exclusion stays, unless the target refuses the load of its table, too."""
        self.add_counts()
        for name, entry in tables.items():
            older = self.tables.excluded.get(name)
            if older is None:
                self.tables = self.tables.excluding(name, entry)
            elif entry.reason.startswith(QUARANTINED) and entry.since > older.since:
                self.tables = self.tables.excluding(name, replace(entry, changes=older.changes))

    def applied(self) -> list[Table]:
        """The tables that are not excluded."""
        return [table for table in self.tables if table.name not in self.tables.excluded]

    def whole(self) -> list[Table]:
        """The tables that are neither excluded nor being loaded."""
        return [table for table in self.applied() if table.name not in self.tables.loading]

    def changed_tables(self) -> tuple[list[TableName], list[Table]]:
        """The names to delete from the bookkeeping, and the tables to write to it."""
        return changed(self._saved, self.tables)

    def changed_exclusions(self) -> tuple[list[TableName], dict[TableName, Excluded]]:
        """The names of exclusions to delete from the bookkeeping, and the exclusions to write to it."""
        return exclusions(self._saved, self.tables)

    def changed_loads(self) -> tuple[list[TableName], dict[TableName, Loading]]:
        """The names of loads to delete from the bookkeeping, and the loads to write to it."""
        return loads(self._saved, self.tables)

    def changed_marks(self) -> tuple[list[str], list[tuple[str, Table]]]:
        """The tables of marks to drop, and those to create with the tables that they belong to."""
        return marks(self._saved, self.tables)

    @property
    def loads_changed(self) -> bool:
        """True if the next commit begins the only load, or ends the last one."""
        return bool(self._saved.loading) != bool(self.tables.loading)

    def consistent(self, *, otherwise: bool) -> bool:
        """Return whether readers see what the source showed, after the next commit.

        Args:
            otherwise: whether they would if no table were being loaded; the loads keep it for a later claim.
        """
        for name, entry in self.tables.loading.items():
            if entry.consistent != otherwise:
                self.tables = self.tables.with_loading(name, replace(entry, consistent=otherwise))
        return otherwise and not self.tables.loading

    def tables_committed(self) -> None:
        """The changed tables are committed, the exclusions not."""
        self._saved = TargetSchema(self.tables, self._saved.transaction, self._saved.excluded, self._saved.loading)

    def committed(self) -> None:
        """The commit succeeded."""
        self._saved = self.tables
        self.repaired = self._refused_repair = None
        self._counted += self.uncounted
        self.uncounted.clear()

    def discard(self) -> None:
        """Return to the schema of the last commit."""
        self.tables = self._saved
        self._statements.clear()
        self.repaired = self._refused_repair = None
        self.uncounted.clear()
