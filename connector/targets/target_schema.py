"""Every table we made on a target, as the source defines it. Immutable: a DDL makes another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from connector.errors import TargetDiffers
from connector.log.ids import Seqno
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.targets.table import Table
from connector.targets.types import family


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """That the applier goes on without a table: it stays on the target as it is.

    Args:
        since: the first event whose changes of it are not applied.
        at: µs since 1970 UTC.
        by: who decided it, user@host.
        because: why.
        changes: row changes and statements that were not applied, as the last commit left it.
    """

    since: Seqno
    at: int
    by: str
    because: str
    changes: int = 0


class TargetSchema:
    """Tables by name.

    Args:
        tables: those there are.
        transaction: the columns of the transaction that each table has which is made.
        excluded: those that the applier goes on without, by their names in the log. What is here of them is what
            they were.
    """

    def __init__(
        self,
        tables: Iterable[Table] = (),
        transaction: tuple[Column, ...] = (),
        excluded: Mapping[TableName, Excluded] = MappingProxyType({}),
    ) -> None:
        self.transaction = transaction
        self.excluded = excluded
        self._tables: Mapping[TableName, Table] = MappingProxyType({table.name: table for table in tables})
        self._checked: dict[TableName, TableLayout] = {}

    def __iter__(self) -> Iterator[Table]:
        return iter(self._tables.values())

    def __contains__(self, name: TableName) -> bool:
        return name in self._tables

    def find(self, name: TableName) -> Table | None:
        """The table of this name, if we made one."""
        return self._tables.get(name)

    def get(self, name: TableName) -> Table:
        """The table of this name.

        Raises:
            TargetDiffers: we made none.
        """
        table = self._tables.get(name)
        if table is None:
            raise TargetDiffers(
                f"table {name} was not made by us",
                hint="A log that starts without a snapshot has tables that the target lacks: start with a snapshot.",
            )
        return table

    def of_schema(self, schema: str) -> list[Table]:
        """The tables of a schema."""
        return [table for table in self if table.name.schema == schema]

    def with_table(self, table: Table) -> TargetSchema:
        """This, and a table: a new one or another definition."""
        return TargetSchema({**self._tables, table.name: table}.values(), self.transaction, self.excluded)

    def without(self, name: TableName) -> TargetSchema:
        """This, less a table."""
        return TargetSchema((table for table in self if table.name != name), self.transaction, self.excluded)

    def excluding(self, name: TableName, entry: Excluded) -> TargetSchema:
        """This, with a table that the applier goes on without."""
        return TargetSchema(self, self.transaction, {**self.excluded, name: entry})

    def including(self, name: TableName) -> TargetSchema:
        """This, with a table that is like any other again."""
        kept = {other: entry for other, entry in self.excluded.items() if other != name}
        return TargetSchema(self, self.transaction, kept)

    def counted(self, changes: Mapping[TableName, int]) -> TargetSchema:
        """This, with changes counted of tables that the applier goes on without."""
        counted = {
            name: replace(entry, changes=entry.changes + changes.get(name, 0)) for name, entry in self.excluded.items()
        }
        return TargetSchema(self, self.transaction, counted)

    def loading(self, transaction: tuple[Column, ...], first: Seqno) -> TargetSchema:
        """What is left where an initial load begins: the tables that were named for it to be gone on without.

        Args:
            transaction: the columns of the transaction.
            first: the load's first event. Who was excluded before it is loaded like others.
        """
        return TargetSchema(
            (), transaction, {name: entry for name, entry in self.excluded.items() if entry.since >= first}
        )

    def check(self, layout: TableLayout) -> None:
        """Compare a layout of the log with the table: whatever both know must be the same.

        Where the table has columns of the transaction, the layout has them, too.

        Raises:
            TargetDiffers: other columns, another order, another type, another key, or no such table.
        """
        if self._checked.get(layout.name) == layout:
            return
        table = self.get(layout.name)
        ours, theirs = table.stored, layout.columns
        if [column.name for column in ours] != [column.name for column in theirs]:
            raise _differs(
                layout,
                f"table {layout.name} has columns {', '.join(column.name for column in ours)}; "
                f"the log has {', '.join(column.name for column in theirs)}",
            )
        for our, their in zip(ours, theirs, strict=True):
            if family(our) != family(their):
                raise _differs(
                    layout, f"column {our.name} of table {layout.name} is {family(our)}; the log has {family(their)}"
                )
            if our.labels and their.labels and our.labels != their.labels:
                raise _differs(layout, f"column {our.name} of table {layout.name} has other labels in the log")
        # Without a primary key MySQL finds rows by the first unique key that is NOT NULL, and logs it as if it were
        # one: rows are told by it, so they are found by it. The table has it as columns like others.
        told = not table.layout.key and not any(layout.columns[index].nullable for index in layout.key)
        if set(table.layout.key) != set(layout.key) and not told:
            raise _differs(layout, f"table {layout.name} has another primary key in the log")
        self._checked[layout.name] = layout


def _differs(layout: TableLayout, what: str) -> TargetDiffers:
    return TargetDiffers(what, hint=go_on_without(layout.name), table=layout.name)


def go_on_without(*names: TableName) -> str:
    """The way out that every table has."""
    tables = " ".join(f"--exclude-table {name}" for name in names)
    return f"to go on without {' and '.join(map(str, names))}: thl apply {tables} --reason …"


def changed(before: TargetSchema, after: TargetSchema) -> tuple[list[TableName], list[Table]]:
    """What the bookkeeping must do to get from one to the other: names to remove, and tables to write."""
    gone = [table.name for table in before if not _same(after.find(table.name), table)]
    new = [table for table in after if not _same(before.find(table.name), table)]
    return gone, new


def exclusions(before: TargetSchema, after: TargetSchema) -> tuple[list[TableName], dict[TableName, Excluded]]:
    """The same for the tables that the applier goes on without: a name may be another table's now."""
    gone = [name for name, entry in before.excluded.items() if after.excluded.get(name) != entry]
    return gone, {name: entry for name, entry in after.excluded.items() if before.excluded.get(name) != entry}


def _same(one: Table | None, other: Table) -> bool:
    return one == other and one is not None and one.defaults == other.defaults
