"""Staging in PostgreSQL: TEMP tables that belong to our session and are seen by nobody else.

Rows come by COPY and are committed at once, so that no transaction stays open and no lock is held while an event is
still coming. They are merged, in order, by the one transaction of the commit; a crash ends the session and takes them
away. A table of staging is kept and used again; it is emptied by the transaction that merges it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import psycopg

from connector import failpoints as faults
from connector.errors import ValueNotRepresentable
from connector.log.compact.net_changes import Images, NetChanges
from connector.log.transaction.layout import Column, TableLayout
from connector.targets.postgres.copy import HEADER, TRAILER, Kind, Unfit, copy_rows
from connector.targets.postgres.merge import Counts, Step, merge
from connector.targets.postgres.types import bit_count, copy_kind, postgres_type
from connector.targets.target_schema import go_on_without
from connector.targets.values import rows as decoded

CHUNK_BYTES = 1 << 18
# Beyond so many rows that came and went a table is truncated, which costs some catalogue rows, instead of deleted from.
WORN_ROWS = 5_000
# How many layouts keep their table of staging.
KEPT_LAYOUTS = 256


@dataclass(slots=True)
class Staged:
    """One table of staging: what its rows are, and how many were put in since it was last truncated.

    Args:
        own: how many of the layout's columns are the source's; those behind are the transaction's.
        partial: whether it has columns for rows of which only some are known.
        stamp: the transaction's columns as expressions, where they were told after rows were staged.
    """

    name: str
    layout: TableLayout
    own: int
    partial: bool = False
    stamp: tuple[str, ...] = ()
    counts: Counts = field(default_factory=Counts)
    worn: int = 0


class Staging:
    """What is staged, in order.

    Args:
        connection: the session; in autocommit.
        transaction: how many columns of the transaction each table has.
    """

    def __init__(self, connection: psycopg.Connection, transaction: int) -> None:
        self._connection = connection
        self._transaction = transaction
        self._made = 0
        self._idle: dict[tuple[TableLayout, bool], Staged] = {}

    def put(self, net: NetChanges, before: Staged | None) -> Staged:
        """Take net operations.

        Args:
            net: what to stage.
            before: the table that this layout was last staged to since the last commit, if any: inserts alone are
                added to it, because inserts come last in a merge.

        Returns:
            The table they are in.

        Raises:
            ValueNotRepresentable: a value that its column cannot hold.
        """
        partial = net.partial
        if before is not None and partial is None and not len(net.deletes) and not len(net.updates):
            table = before
        else:
            kind = net.layout, partial is not None
            table = self._idle.pop(kind) if kind in self._idle else self._create(*kind)
        every = bytes([1]) * len(net.layout.columns)
        key = bytes(index in net.layout.key for index in range(len(net.layout.columns))) if net.layout.key else every
        columns = f" ({', '.join(['thl_op', *_columns(net.layout)])})" if table.partial else ""
        self._copy(
            f"{table.name}{columns}",
            (_chunks(net.layout, net.deletes, key, "d"), _chunks(net.layout, net.updates, every, "u"),
             _chunks(net.layout, net.inserts, every, "i")),
        )  # fmt: skip
        table.counts.again = table.counts.again or net.again
        table.counts.deletes += len(net.deletes)
        table.counts.updates += len(net.updates)
        table.counts.inserts += len(net.inserts)
        if partial is not None:
            self._copy(table.name, (_parts(net.layout, partial.changed, "c"), _parts(net.layout, partial.moved, "m")))
            table.counts.changed += len(partial.changed)
            table.counts.moved += len(partial.moved)
        table.worn += len(net)
        return table

    def _copy(self, into: str, sources: Iterable[Iterator[bytes]]) -> None:
        with self._connection.cursor().copy(f"COPY {into} FROM STDIN (FORMAT binary)".encode()) as copy:
            copy.write(HEADER)
            for chunks in sources:
                for chunk in chunks:
                    copy.write(chunk)
                    faults.point("target.mid_stage")
            copy.write(TRAILER)

    def merged(self, table: Staged) -> Iterator[Step]:
        """The statements that merge a table of staging and empty it."""
        yield from merge(table.layout, table.name, table.counts, own=table.own, stamp=table.stamp)
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
        table.stamp = ()
        self._idle[kind] = table

    def forget(self) -> None:
        """Drop every idle table: layouts are others now."""
        for table in self._idle.values():
            self._connection.execute(f"DROP TABLE {table.name}")
        self._idle.clear()

    def drop(self, table: Staged) -> None:
        """Drop a table with what is in it."""
        self._connection.execute(f"DROP TABLE {table.name}")

    def _create(self, layout: TableLayout, partial: bool) -> Staged:
        self._made += 1
        own = len(layout.columns) - self._transaction
        table = Staged(f"pg_temp.thl_stage_{self._made}", layout, own, partial)
        types = [postgres_type(column, key=index in layout.key) for index, column in enumerate(layout.columns)]
        columns = [f"{name} {kind}" for name, kind in zip(_columns(layout), types, strict=True)]
        if partial:
            columns.append("thl_has bytea")
            columns += [f"k{place} {types[index]}" for place, index in enumerate(layout.key)]
        self._connection.execute(
            f'CREATE TEMP TABLE thl_stage_{self._made} (thl_op "char", {", ".join(columns)})'.encode()
        )
        return table


def _columns(layout: TableLayout) -> list[str]:
    return [f"c{index}" for index in range(len(layout.columns))]


def _parts(layout: TableLayout, images: Images, letter: str) -> Iterator[bytes]:
    """Images of some columns, with their bitmap and old key."""
    columns = [*layout.columns, Column("thl_has", "longblob"), *(layout.columns[index] for index in layout.key)]
    wide = TableLayout(layout.name, tuple(columns), tuple(range(len(layout.columns) + 1, len(columns))))
    yield from _chunks(wide, images, bytes([1]) * len(columns), letter)


def _chunks(layout: TableLayout, images: Images, wanted: bytes, letter: str) -> Iterator[bytes]:
    kinds = bytes(copy_kind(column) for column in layout.columns)
    bits = bytes(bit_count(column) for column in layout.columns)
    done = 0
    while done < len(images):
        try:
            chunk, done = copy_rows(images.data, images.ends, done, kinds, bits, wanted, ord(letter), CHUNK_BYTES)
        except Unfit as unfit:
            raise _located(layout, images, unfit) from unfit
        yield chunk


def _ways_out(layout: TableLayout, column: Column, value: object) -> str:
    """How to go on: the value is in the log, so the source and its filters decide on later events alone."""
    ways = (
        f"PostgreSQL has no such value, and it is in the log already; {go_on_without(layout.name)}; what changes on "
        "the source or in source.filters is for later events alone"
    )
    if copy_kind(column) in (Kind.DATE, Kind.TIMESTAMP) and "00" in str(value)[:10].split("-")[1:]:
        ways += (
            ': for a whole table, zero_dates: ["*"] in its rule of source.filters.tables publishes NULL for such '
            "dates, with a new `service`, which is another log with another initial load"
        )
    return ways


def _located(layout: TableLayout, images: Images, unfit: Unfit) -> ValueNotRepresentable:
    """Which row and column of which table it is."""
    row = decoded(images.data, images.ends, len(layout.columns))[unfit.image]
    shown = layout.key or range(len(layout.columns))
    return ValueNotRepresentable(
        f"column {layout.columns[unfit.column].name} of {layout.name} has the value {row[unfit.column]!r:.200}, "
        f"which {unfit.reason}",
        hint=_ways_out(layout, layout.columns[unfit.column], row[unfit.column]),
        row=", ".join(f"{layout.columns[index].name}={row[index]!r:.100}" for index in shown),
    )
