"""From staging to a table of PostgreSQL: set-based statements, each with the number of rows it must touch.

In staging the operation is `thl_op` ('d', 'u', 'i') and the columns are c0, c1 …, in the layout's order.

A keyless table loses rows by comparing their text, `ROW(…)::text`: every type we make prints each of its values in
a way of its own, NULL and '' too, and text can be hashed, which `IS NOT DISTINCT FROM` and json cannot. Of equal rows
as many go as are to go. That reads the table once a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from connector.thl.layout import TableLayout
from connector.write.postgres_names import column_name, column_names, table_name


@dataclass(slots=True)
class Counts:
    """How many rows of each operation are staged."""

    deletes: int = 0
    updates: int = 0
    inserts: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.deletes + self.updates + self.inserts


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, what it does to which table, and how many rows it must touch (None: any number)."""

    sql: str
    done: str = ""
    expected: int | None = None


def merge(layout: TableLayout, staging: str, counts: Counts) -> Iterator[Step]:
    """Deletes, then updates, then inserts."""
    name = table_name(layout.name)
    columns = [column_name(column.name) for column in layout.columns]
    key = " AND ".join(f"t.{columns[index]} = s.c{index}" for index in layout.key)
    if counts.deletes:
        if layout.key:
            sql = f"DELETE FROM {name} t USING {staging} s WHERE s.thl_op = 'd' AND {key}"
        else:
            sql = _delete_equal(name, columns, staging)
        yield Step(sql, f"deleted from {layout.name}", counts.deletes)
    if counts.updates:
        others = [index for index in range(len(columns)) if index not in layout.key] or list(layout.key)
        assignments = ", ".join(f"{columns[index]} = s.c{index}" for index in others)
        sql = f"UPDATE {name} t SET {assignments} FROM {staging} s WHERE s.thl_op = 'u' AND {key}"
        yield Step(sql, f"updated in {layout.name}", counts.updates)
    if counts.inserts:
        staged = ", ".join(f"c{index}" for index in range(len(columns)))
        into = column_names(column.name for column in layout.columns)
        sql = f"INSERT INTO {name} ({into}) SELECT {staged} FROM {staging} WHERE thl_op = 'i'"
        yield Step(sql, f"inserted into {layout.name}", counts.inserts)


def _delete_equal(name: str, columns: list[str], staging: str) -> str:
    there = ", ".join(f"t.{column}" for column in columns)
    gone = ", ".join(f"c{index}" for index in range(len(columns)))
    return (
        f"WITH gone AS (SELECT ROW({gone})::text AS image, count(*) AS copies "
        f"FROM {staging} WHERE thl_op = 'd' GROUP BY 1), "
        f"found AS (SELECT t.ctid AS place, g.copies, row_number() OVER (PARTITION BY g.image) AS nth "
        f"FROM {name} t JOIN gone g ON ROW({there})::text = g.image) "
        f"DELETE FROM {name} t USING found f WHERE t.ctid = f.place AND f.nth <= f.copies"
    )
