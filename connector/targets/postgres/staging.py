"""Staging tables in PostgreSQL: TEMP tables of the applier's session, which other sessions do not see.

Rows are loaded by COPY and committed at once, so no transaction stays open and no lock is held until the end of an
event. The commit merges them, in order, in one transaction; a crash ends the session and drops them. Staging tables are
reused; the transaction that merges a table empties it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import psycopg

from connector import failpoints as faults
from connector.errors import ValueNotRepresentable
from connector.log.compact.net_changes import Images, NetChanges
from connector.log.transaction.layout import Column, TableLayout
from connector.targets.marks import Marks
from connector.targets.postgres.copy import HEADER, TRAILER, CopyKind, ValueDoesNotFit, copy_rows
from connector.targets.postgres.direct_copy import DirectCopy, DirectRows
from connector.targets.postgres.merge import STRICT, Counts, LateValues, Step, Tolerance, merge, run_steps
from connector.targets.postgres.types import bit_count, copy_kind, postgres_type
from connector.targets.target_schema import go_on_without
from connector.targets.values import rows as decoded

CHUNK_BYTES = 1 << 18
# After this many rows a table is truncated, which costs some rows in pg_catalog, instead of emptied by DELETE.
WORN_ROWS = 5_000
# The number of layouts that keep their staging table.
KEPT_LAYOUTS = 256


@dataclass(slots=True)
class Staged:
    """One staging table.

    Args:
        own: the number of the source's columns in the layout; the metadata columns follow.
        partial: true if it can store rows of which the log has only some columns.
        metadata: expressions for the metadata columns, if their values came after the rows were staged.
        history: true for rows of a history; their last column is the only one of which the value may come later.
        worn: the number of rows added since the last TRUNCATE.
        tolerance: what the rows of the target's table may be before the merge.
    """

    name: str
    layout: TableLayout
    own: int
    partial: bool = False
    metadata: tuple[str, ...] = ()
    counts: Counts = field(default_factory=Counts)
    worn: int = 0
    tolerance: Tolerance = STRICT
    history: bool = False

    def set_metadata(self, values: LateValues) -> None:
        """Set the values that came after the rows were staged."""
        self.metadata = values.event if self.history else values.metadata


class Staging:
    """The staging tables of a session.

    Args:
        connection: the session, in autocommit.
        transaction: the number of metadata columns of each table.
    """

    def __init__(self, connection: psycopg.Connection, transaction: int) -> None:
        self._connection = connection
        self._transaction = transaction
        self._made = 0
        self._idle: dict[tuple[TableLayout, bool], Staged] = {}
        self._direct = DirectCopy(connection)

    def accept(
        self, net: NetChanges, before: Staged | DirectRows | None, marked: Marks | None, *, last: bool
    ) -> Staged | DirectRows:
        """Stage net changes, or encode them for a COPY into their table.

        Args:
            net: the changes.
            before: what was made of the layout's last changes since the last commit, if any.
            marked: the marks of the table, if it has some.
            last: true if the commit follows.

        Raises:
            ValueNotRepresentable: a value that its column cannot store.
        """
        if marked is None and self._direct.accepts(net, last=last):
            return DirectRows(net, list(_chunks(net.layout, net.inserts, bytes([1]) * len(net.layout.columns))))
        return self.put(net, before if isinstance(before, Staged) else None, marked)

    def rolled_back(self, work: Iterable[Staged | DirectRows]) -> list[Staged]:
        """The staging tables of a commit that was rolled back; all rows are then in one."""
        self._idle.clear()  # none is empty: those that the commit merged have their rows again, or are gone
        return [self._staged(rows) for rows in work]

    def _staged(self, rows: Staged | DirectRows) -> Staged:
        if isinstance(rows, Staged):
            return rows
        table = self.put(rows.net, None)
        table.metadata = rows.metadata
        return table

    def merge(self, steps: list[Step], rows: Staged | DirectRows) -> list[Step]:
        """Add statements that merge rows to those of a transaction; return those that are still to be run."""
        if isinstance(rows, DirectRows):
            run_steps(self._connection, steps)
            steps = []
            if self._direct.copied(rows):
                return steps
        steps += self.merged(self._staged(rows))
        return steps

    def put(self, net: NetChanges, before: Staged | None, marked: Marks | None = None) -> Staged:
        """Stage net changes.

        Args:
            net: the changes.
            before: the staging table of the layout's last changes since the last commit, if any. It takes further
                changes if they are only inserts of new rows, because a merge applies inserts last.
            marked: the marks of the table, if it has some.

        Returns:
            The staging table of the changes.

        Raises:
            ValueNotRepresentable: a value that its column cannot store.
        """
        partial = net.partial
        inserts_alone = partial is None and not len(net.deletes) and not len(net.updates) and not net.replaces
        if before is not None and inserts_alone:
            table = before
        else:
            kind = net.layout, partial is not None
            table = self._idle.pop(kind) if kind in self._idle else self._create(*kind)
            table.history = net.history_of is not None
        every = bytes([1]) * len(net.layout.columns)
        key = bytes(index in net.layout.key for index in range(len(net.layout.columns))) if net.layout.key else every
        columns = f" ({', '.join(['thl_op', *_columns(net.layout)])})" if table.partial else ""
        self._copy(
            f"{table.name}{columns}",
            (_chunks(net.layout, net.deletes, key, "d"), _chunks(net.layout, net.updates, every, "u"),
             _chunks(net.layout, net.inserts, every, "i")),
        )  # fmt: skip
        table.tolerance = Tolerance(net.again, net.replaces, marked)
        table.counts.deletes += len(net.deletes)
        table.counts.updates += len(net.updates)
        table.counts.inserts += len(net.inserts)
        if partial is not None:
            self._copy(table.name, (_parts(net.layout, partial.changed, "c"), _parts(net.layout, partial.moved, "m")))
            table.counts.changed += len(partial.changed)
            table.counts.moved += len(partial.moved)
        table.worn += len(net)
        return table

    def copied(self, table: Staged, other: psycopg.Connection) -> Staged:
        """Copy a staging table of another session, and return the copy."""
        made = self._create(table.layout, table.partial)
        made.metadata, made.counts, made.worn = table.metadata, replace(table.counts), table.worn
        made.tolerance, made.history = table.tolerance, table.history
        with (
            other.cursor().copy(f"COPY {table.name} TO STDOUT (FORMAT binary)".encode()) as source,
            self._connection.cursor().copy(f"COPY {made.name} FROM STDIN (FORMAT binary)".encode()) as into,
        ):
            for chunk in source:
                into.write(chunk)
        return made

    def _copy(self, into: str, sources: Iterable[Iterator[bytes]]) -> None:
        with self._connection.cursor().copy(f"COPY {into} FROM STDIN (FORMAT binary)".encode()) as copy:
            copy.write(HEADER)
            for chunks in sources:
                for chunk in chunks:
                    copy.write(chunk)
                    faults.point("target.mid_stage")
            copy.write(TRAILER)

    def merged(self, table: Staged) -> Iterator[Step]:
        """The statements that merge a staging table and empty it."""
        yield from merge(
            table.layout,
            table.name,
            table.counts,
            own=table.own,
            metadata=table.metadata,
            tolerance=table.tolerance,
        )
        kind = table.layout, table.partial
        if kind in self._idle or len(self._idle) >= KEPT_LAYOUTS:
            yield Step(f"DROP TABLE {table.name}")
            return
        if table.worn >= WORN_ROWS:
            yield Step(f"TRUNCATE {table.name}")
            table.worn = 0
        else:
            yield Step(f"DELETE FROM {table.name}")
        table.counts = Counts()
        table.metadata = ()
        self._idle[kind] = table

    def forget(self) -> None:
        """Drop every idle table, because layouts have changed."""
        for table in self._idle.values():
            self._connection.execute(f"DROP TABLE {table.name}")
        self._idle.clear()

    def drop(self, table: Staged | DirectRows) -> None:
        """Drop a staging table and its rows."""
        if isinstance(table, Staged):
            self._connection.execute(f"DROP TABLE {table.name}")

    def _create(self, layout: TableLayout, partial: bool) -> Staged:
        self._made += 1
        own = len(layout.columns) - self._transaction
        table = Staged(f"pg_temp.thl_stage_{self._made}", layout, own, partial)
        types = [postgres_type(column, key=index in layout.key) for index, column in enumerate(layout.columns)]
        columns = [f"{name} {kind}" for name, kind in zip(_columns(layout), types, strict=True)]
        if partial:
            columns.append("thl_has bytea")
            columns += [f"k{position} {types[index]}" for position, index in enumerate(layout.key)]
        self._connection.execute(
            f'CREATE TEMP TABLE thl_stage_{self._made} (thl_op "char", {", ".join(columns)})'.encode()
        )
        return table


def _columns(layout: TableLayout) -> list[str]:
    return [f"c{index}" for index in range(len(layout.columns))]


def _parts(layout: TableLayout, images: Images, letter: str) -> Iterator[bytes]:
    """COPY data of partial images, with their bitmap and old key."""
    columns = [*layout.columns, Column("thl_has", "longblob"), *(layout.columns[index] for index in layout.key)]
    wide = TableLayout(layout.name, tuple(columns), tuple(range(len(layout.columns) + 1, len(columns))))
    yield from _chunks(wide, images, bytes([1]) * len(columns), letter)


def _chunks(layout: TableLayout, images: Images, selected: bytes, letter: str = "\0") -> Iterator[bytes]:
    kinds = bytes(copy_kind(column) for column in layout.columns)
    bits = bytes(bit_count(column) for column in layout.columns)
    done = 0
    while done < len(images):
        try:
            chunk, done = copy_rows(images.data, images.ends, done, kinds, bits, selected, ord(letter), CHUNK_BYTES)
        except ValueDoesNotFit as unfit:
            raise _located(layout, images, unfit) from unfit
        yield chunk


def _ways_out(layout: TableLayout, column: Column, value: object) -> str:
    """The hint for a value that cannot be stored: it is in the log already, so the source affects later events only."""
    ways = (
        f"PostgreSQL cannot store this value, and it is in the log already; {go_on_without(layout.name)}; changes of "
        "the source or of source.filters affect later events only"
    )
    if copy_kind(column) in (CopyKind.DATE, CopyKind.TIMESTAMP) and "00" in str(value)[:10].split("-")[1:]:
        ways += (
            ': for a whole table, zero_dates: ["*"] in its rule of source.filters.tables publishes NULL for such '
            "dates, with a new `service`, which is another log with another initial load, and an empty target"
        )
    return ways


def _located(layout: TableLayout, images: Images, unfit: ValueDoesNotFit) -> ValueNotRepresentable:
    """The error with the table, row and column of the value."""
    row = decoded(images.data, images.ends, len(layout.columns))[unfit.image]
    shown = layout.key or range(len(layout.columns))
    return ValueNotRepresentable(
        f"a column has the value {row[unfit.column]!r:.200}, which {unfit}",
        hint=_ways_out(layout, layout.columns[unfit.column], row[unfit.column]),
        table=layout.name,
        column=layout.columns[unfit.column].name,
        reason=unfit.reason,
        row=", ".join(f"{layout.columns[index].name}={row[index]!r:.100}" for index in shown),
    )
