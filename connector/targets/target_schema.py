"""The tables that the applier created on a target, as the source defines them. Immutable: DDL makes a new schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from connector.errors import ConnectorError, TargetDamaged, TargetDiffers, Unsupported, ValueNotRepresentable
from connector.log.ids import Seqno
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.targets.table import Table
from connector.targets.types import family

QUARANTINED: Final = "quarantined: "
"""The prefix of the reason in `thl_excluded` for a table that the applier has excluded by itself."""

REFUSALS: Final = (TargetDiffers, ValueNotRepresentable, Unsupported)
"""The errors that may be the fault of a table, unless they are `TargetDamaged`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """The exclusion of a table, which stays on the target as it is.

    Args:
        since: the first event whose changes of the table are not applied.
        at: time of the exclusion, µs since 1970 UTC.
        by: the user who excluded it, user@host, or the applier.
        reason: the reason that the user gave; if the applier excluded it, `QUARANTINED` and the cause without values of
            rows, then lines that may have some.
        changes: row changes and statements that were not applied, as of the last commit.
    """

    since: Seqno
    at: int
    by: str
    reason: str
    changes: int = 0


class LoadContent(StrEnum):
    """The rows that the target has of a table that is being loaded."""

    NEW = "new"  # rows that were written since the load began, and no others
    MARKED = "marked"  # older rows, too; the keys of those written since are in `Loading.marks`
    AWAITS_ROWS = "awaits rows"  # it has no key: nothing is applied before the event with all its rows
    AWAITS_BEGIN = "awaits begin"  # its key has changed: nothing is applied before its load begins again


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The load of a table, whose rows are not yet the source's.

    Args:
        load: the ID of the load.
        since: the event that began it.
        at: the time of its commit, µs since 1970 UTC.
        state: what the target has of the table.
        marks: the name of the table with the keys that were written since the load began; "" without one.
        consistent: whether the target is consistent but for the tables that are being loaded.
    """

    load: str
    since: Seqno
    at: int
    state: LoadContent
    marks: str = ""
    consistent: bool = True

    @property
    def awaits(self) -> bool:
        """True if changes of the table are dropped: what comes later replaces them."""
        return self.state in (LoadContent.AWAITS_ROWS, LoadContent.AWAITS_BEGIN)


class TargetSchema:
    """Tables by name.

    Args:
        tables: the tables.
        transaction: the metadata columns of every new table.
        excluded: the excluded tables by their names in the log. Their definitions are those before the exclusion.
        loading: the tables that are being loaded.
    """

    def __init__(
        self,
        tables: Iterable[Table] = (),
        transaction: tuple[Column, ...] = (),
        excluded: Mapping[TableName, Excluded] = MappingProxyType({}),
        loading: Mapping[TableName, Loading] = MappingProxyType({}),
    ) -> None:
        self.transaction = transaction
        self.excluded = excluded
        self.loading = loading
        self._tables: Mapping[TableName, Table] = MappingProxyType({table.name: table for table in tables})
        self._checked: dict[TableName, TableLayout] = {}

    def __iter__(self) -> Iterator[Table]:
        return iter(self._tables.values())

    def __contains__(self, name: TableName) -> bool:
        return name in self._tables

    def find(self, name: TableName) -> Table | None:
        """The table of this name; None if the applier created none."""
        return self._tables.get(name)

    def get(self, name: TableName) -> Table:
        """The table of this name.

        Raises:
            TargetDiffers: the applier created no such table.
        """
        table = self._tables.get(name)
        if table is None:
            raise TargetDiffers(
                f"the applier has not created table {name}",
                hint="a log that begins without an initial load has tables that the target lacks: thl load brings them",
            )
        return table

    def source_table(self, name: TableName) -> TableName:
        """The table of the source to which a table of the target belongs: of a history the one whose changes it has."""
        table = self.find(name)
        return name if table is None or table.history_of is None else table.history_of

    def of_schema(self, schema: str) -> list[Table]:
        """The tables of a schema."""
        return [table for table in self if table.name.schema == schema]

    def with_table(self, table: Table) -> TargetSchema:
        """This schema with a new table, or with a new definition of a table."""
        return self._but(tables={**self._tables, table.name: table}.values())

    def with_tables(self, tables: Iterable[Table]) -> TargetSchema:
        """This schema with new tables."""
        new = {table.name: table for table in tables}
        return self._but(tables={**self._tables, **new}.values()) if new else self

    def without(self, name: TableName) -> TargetSchema:
        """This schema without a table, which is not loaded any more."""
        return self._but(tables=(table for table in self if table.name != name)).whole(name)

    def renamed(self, table: Table, name: TableName) -> TargetSchema:
        """This schema with a table under another name, with its load."""
        after = self.without(table.name).with_table(table.renamed(name))
        return after if table.name not in self.loading else after.with_loading(name, self.loading[table.name])

    def excluding(self, name: TableName, entry: Excluded) -> TargetSchema:
        """This schema with an excluded table, which is not loaded any more."""
        return self._but(excluded={**self.excluded, name: entry}).whole(name)

    def including(self, name: TableName) -> TargetSchema:
        """This schema with a table that is no longer excluded."""
        return self._but(excluded={other: entry for other, entry in self.excluded.items() if other != name})

    def counted(self, changes: Mapping[TableName, int]) -> TargetSchema:
        """This schema with more changes counted of excluded tables."""
        counted = {
            name: replace(entry, changes=entry.changes + changes.get(name, 0)) for name, entry in self.excluded.items()
        }
        return self._but(excluded=counted)

    def with_loading(self, name: TableName, entry: Loading) -> TargetSchema:
        """This schema with a table that is being loaded, or with another state of its load."""
        return self._but(loading={**self.loading, name: entry})

    def whole(self, name: TableName) -> TargetSchema:
        """This schema with a table that is not being loaded."""
        if name not in self.loading:
            return self
        return self._but(loading={other: entry for other, entry in self.loading.items() if other != name})

    def at_snapshot(self, transaction: tuple[Column, ...], first: Seqno) -> TargetSchema:
        """The schema at the start of an initial load: no tables but histories, and the exclusions that apply to it.

        Args:
            transaction: the metadata columns.
            first: the load's first event. Tables that were excluded before it are loaded.
        """
        histories = (table for table in self if table.history_of is not None)
        return TargetSchema(
            histories, transaction, {name: entry for name, entry in self.excluded.items() if entry.since >= first}
        )

    def _but(
        self,
        tables: Iterable[Table] | None = None,
        excluded: Mapping[TableName, Excluded] | None = None,
        loading: Mapping[TableName, Loading] | None = None,
    ) -> TargetSchema:
        """This schema with some of its parts replaced."""
        return TargetSchema(
            self if tables is None else tables,
            self.transaction,
            self.excluded if excluded is None else excluded,
            self.loading if loading is None else loading,
        )

    def check(self, layout: TableLayout) -> None:
        """Compare a layout of the log with the table; everything that both define must be equal.

        If the table has metadata columns, the layout has them, too.

        Raises:
            TargetDiffers: columns, their order, a type or the key differ, or there is no such table.
        """
        if self._checked.get(layout.name) == layout:
            return
        table = self.find(layout.name)
        if table is None:
            lacking = _differs(layout, f"the applier has not created table {layout.name}")
            lacking.hint += "; thl load brings it later"
            raise lacking
        columns, log_columns = table.stored, layout.columns
        if [column.name for column in columns] != [column.name for column in log_columns]:
            raise _differs(
                layout,
                f"table {layout.name} has columns {', '.join(column.name for column in columns)}; "
                f"the log has {', '.join(column.name for column in log_columns)}",
            )
        for stored, logged in zip(columns, log_columns, strict=True):
            if family(stored) != family(logged):
                raise _differs(
                    layout,
                    f"column {stored.name} of table {layout.name} is {family(stored)}; the log has {family(logged)}",
                )
            if stored.labels and logged.labels and stored.labels != logged.labels:
                raise _differs(layout, f"column {stored.name} of table {layout.name} has other labels in the log")
        # Without a primary key MySQL logs the first unique key that is NOT NULL as if it were the primary key. Rows are
        # then found by it, though it is no primary key of the table here.
        by_unique_key = not table.layout.key and not any(layout.columns[index].nullable for index in layout.key)
        if set(table.layout.key) != set(layout.key) and not by_unique_key:
            raise _differs(
                layout,
                f"table {layout.name} has another primary key in the log",
                key=", ".join(layout.columns[index].name for index in layout.key),
            )
        self._checked[layout.name] = layout


def is_refusal(error: BaseException) -> bool:
    """True if the error may be the fault of a table."""
    return isinstance(error, REFUSALS) and not isinstance(error, TargetDamaged)


@contextmanager
def of_table(name: TableName) -> Iterator[None]:
    """Name the table in the errors that its changes cause."""
    try:
        yield
    except ConnectorError as error:
        if is_refusal(error) and not error.tables:
            error.tables = (name,)
        raise


def _differs(layout: TableLayout, what: str, **where: object) -> TargetDiffers:
    return TargetDiffers(what, hint=go_on_without(layout.name), table=layout.name, **where)


def go_on_without(*names: TableName) -> str:
    """The hint that tells how to exclude tables."""
    tables = " ".join(f"--exclude-table {name}" for name in names)
    return f"to go on without {' and '.join(map(str, names))}: thl apply {tables} --reason …"


def changed(before: TargetSchema, after: TargetSchema) -> tuple[list[TableName], list[Table]]:
    """The names to delete from the bookkeeping, and the tables to write to it, to get from one schema to the other."""
    gone = [table.name for table in before if not _same(after.find(table.name), table)]
    new = [table for table in after if not _same(before.find(table.name), table)]
    return gone, new


def exclusions(before: TargetSchema, after: TargetSchema) -> tuple[list[TableName], dict[TableName, Excluded]]:
    """The same as `changed` for exclusions: a name may belong to another table now."""
    gone = [name for name, entry in before.excluded.items() if after.excluded.get(name) != entry]
    return gone, {name: entry for name, entry in after.excluded.items() if before.excluded.get(name) != entry}


def loads(before: TargetSchema, after: TargetSchema) -> tuple[list[TableName], dict[TableName, Loading]]:
    """The same as `changed` for tables that are being loaded."""
    gone = [name for name, entry in before.loading.items() if after.loading.get(name) != entry]
    return gone, {name: entry for name, entry in after.loading.items() if before.loading.get(name) != entry}


def marks(before: TargetSchema, after: TargetSchema) -> tuple[list[str], list[tuple[str, Table]]]:
    """The tables of marks to drop, and those to create with the tables that they belong to."""
    old, new = (
        {entry.marks: name for name, entry in schema.loading.items() if entry.marks} for schema in (before, after)
    )
    return [one for one in old if one not in new], [
        (one, after.get(name)) for one, name in new.items() if one not in old
    ]


def _same(one: Table | None, other: Table) -> bool:
    return one == other and one is not None and one.uncompared == other.uncompared
