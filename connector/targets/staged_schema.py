"""The schema of a target during a commit: as the last commit left it, and after the staged changes.

The row changes of excluded tables are counted here, too. A commit adds them to the bookkeeping by its own statement, so
that a running exclusion costs no new schema; the schemas get them before an exclusion is renamed or ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from connector.log.compact.net_changes import NetChanges
from connector.log.ids import Seqno
from connector.log.transaction.layout import Column, TableName
from connector.targets.table import Table
from connector.targets.target_schema import Excluded, TargetSchema, changed, exclusions


class StagedSchema:
    """The tables and exclusions of an applier's target, and what the next commit changes of them.

    Attributes:
        tables: the schema after the staged changes.
        uncounted: row changes of excluded tables since the last commit.
    """

    def __init__(self) -> None:
        self.tables = TargetSchema()
        self.uncounted = Counter[TableName]()
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
        """Count the changes and return true if their table is excluded. A replay counts nothing a second time."""
        if net.layout.name not in self.tables.excluded:
            return False
        if not net.again:
            self.uncounted[net.layout.name] += net.changes
        return True

    def add_counts(self) -> None:
        """Add the counts to the schemas, before an exclusion gets another name or ends."""
        if self._counted:
            same = not self.has_changed
            self._saved = self._saved.counted(self._counted)
            self.tables = self._saved if same else self.tables.counted(self._counted)
            self._counted.clear()

    def begin_snapshot(self, columns: tuple[Column, ...], first: Seqno) -> None:
        """Change to the schema at the start of an initial load: see `TargetSchema.loading`."""
        self.tables = self.tables.loading(columns, first)

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        """Exclude tables; an older exclusion stays."""
        self.add_counts()
        for name, entry in tables.items():
            if name not in self.tables.excluded:
                self.tables = self.tables.excluding(name, entry)

    def applied(self) -> list[Table]:
        """The tables that are not excluded."""
        return [table for table in self.tables if table.name not in self.tables.excluded]

    def changed_tables(self) -> tuple[list[TableName], list[Table]]:
        """The names to delete from the bookkeeping, and the tables to write to it."""
        return changed(self._saved, self.tables)

    def changed_exclusions(self) -> tuple[list[TableName], dict[TableName, Excluded]]:
        """The names of exclusions to delete from the bookkeeping, and the exclusions to write to it."""
        return exclusions(self._saved, self.tables)

    def tables_committed(self) -> None:
        """The changed tables are committed, the exclusions not."""
        self._saved = TargetSchema(self.tables, self._saved.transaction, self._saved.excluded)

    def committed(self) -> None:
        """The commit succeeded."""
        self._saved = self.tables
        self._counted += self.uncounted
        self.uncounted.clear()

    def discard(self) -> None:
        """Return to the schema of the last commit."""
        self.tables = self._saved
        self.uncounted.clear()
