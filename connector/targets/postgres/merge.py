"""From staging to a table of PostgreSQL: set-based statements, each with the number of rows it must touch.

In staging the operation is `thl_op` ('d', 'u', 'i') and the columns are c0, c1 …, in the layout's order. Rows of which
only some columns are known are 'c' (changed) and 'm' (moved): `thl_has` is a bit per column, k0, k1 … the old key. What
is not told of a moved row is read from the table before anything is done to it; it is then a delete and an insert, so
that keys may be swapped.

A keyless table loses rows by comparing their text, `ROW(…)::text`: every type we make prints each of its values in
a way of its own, NULL and '' too, and text can be hashed, which `IS NOT DISTINCT FROM` and json cannot. Of equal rows
as many go as are to go. That reads the table once a batch. Columns of the transaction are not compared: with them, the
rows of the newest transactions go first, as they do within a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connector.log.transaction.layout import TableLayout
from connector.targets.postgres.names import column_name, column_names, table_name


@dataclass(slots=True)
class Counts:
    """How many rows of each operation are staged."""

    deletes: int = 0
    updates: int = 0
    inserts: int = 0
    changed: int = 0
    moved: int = 0
    again: bool = False  # rows to delete may be there or not

    @property
    def total(self) -> int:
        """All of them."""
        return self.deletes + self.updates + self.inserts + self.changed + self.moved


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, what it does to which table, and how many rows it must touch (None: any number)."""

    sql: str
    done: str = ""
    expected: int | None = None


def merge(layout: TableLayout, staging: str, counts: Counts, *, own: int, stamp: Sequence[str] = ()) -> Iterator[Step]:
    """Deletes, then updates, then inserts; what moved rows take along first.

    Args:
        layout: what is staged.
        staging: where.
        counts: how many rows of each operation.
        own: how many of the columns, the first, are the source's; those behind are the transaction's.
        stamp: these as expressions, where all rows are of one transaction that told them at its end.
    """
    name = table_name(layout.name)
    columns = [column_name(column.name) for column in layout.columns]
    key = " AND ".join(f"t.{columns[index]} = s.c{index}" for index in layout.key)
    base = " AND ".join(f"t.{columns[index]} = s.k{place}" for place, index in enumerate(layout.key))
    others = [index for index in range(len(columns)) if index not in layout.key]
    staged = [*(f"c{index}" for index in range(len(columns) - len(stamp))), *stamp]
    values = [*(f"s.c{index}" for index in range(len(columns) - len(stamp))), *stamp]

    def told(index: int) -> str:
        return f"CASE WHEN get_bit(s.thl_has, {index}) = 1 THEN {values[index]} ELSE t.{columns[index]} END"

    if counts.moved:
        kept = ", ".join(f"c{index} = {told(index)}" for index in others or layout.key)
        sql = f"UPDATE {staging} s SET {kept} FROM {name} t WHERE s.thl_op = 'm' AND {base}"
        yield Step(sql, f"found in {layout.name} that get another key", counts.moved)
        yield Step(
            f"DELETE FROM {name} t USING {staging} s WHERE s.thl_op = 'm' AND {base}",
            f"deleted from {layout.name}",
            counts.moved,
        )
    if counts.deletes:
        if layout.key:
            sql = f"DELETE FROM {name} t USING {staging} s WHERE s.thl_op = 'd' AND {key}"
        else:
            sql = _delete_equal(name, columns, own, staging)
        yield Step(sql, f"deleted from {layout.name}", None if counts.again else counts.deletes)
    if counts.updates:
        assignments = ", ".join(f"{columns[index]} = {values[index]}" for index in others or layout.key)
        sql = f"UPDATE {name} t SET {assignments} FROM {staging} s WHERE s.thl_op = 'u' AND {key}"
        yield Step(sql, f"updated in {layout.name}", counts.updates)
    if counts.changed:
        assignments = ", ".join(f"{columns[index]} = {told(index)}" for index in others or layout.key)
        sql = f"UPDATE {name} t SET {assignments} FROM {staging} s WHERE s.thl_op = 'c' AND {base}"
        yield Step(sql, f"changed in {layout.name}", counts.changed)
    if counts.inserts or counts.moved:
        into = column_names(column.name for column in layout.columns)
        which = "IN ('i', 'm')" if counts.moved else "= 'i'"
        sql = f"INSERT INTO {name} ({into}) SELECT {', '.join(staged)} FROM {staging} WHERE thl_op {which}"
        yield Step(sql, f"inserted into {layout.name}", counts.inserts + counts.moved)


def _delete_equal(name: str, columns: list[str], own: int, staging: str) -> str:
    there = ", ".join(f"t.{column}" for column in columns[:own])
    gone = ", ".join(f"c{index}" for index in range(own))
    newest = f" ORDER BY t.{columns[own]} DESC NULLS LAST" if own < len(columns) else ""
    return (
        f"WITH gone AS (SELECT ROW({gone})::text AS image, count(*) AS copies "
        f"FROM {staging} WHERE thl_op = 'd' GROUP BY 1), "
        f"found AS (SELECT t.ctid AS place, g.copies, row_number() OVER (PARTITION BY g.image{newest}) AS nth "
        f"FROM {name} t JOIN gone g ON ROW({there})::text = g.image) "
        f"DELETE FROM {name} t USING found f WHERE t.ctid = f.place AND f.nth <= f.copies"
    )
