"""Statements that merge a staging table into a table of PostgreSQL, each with its expected number of rows.

In staging the operation is `thl_op` ('d', 'u', 'i') and the columns are c0, c1 …, in the layout's order. Rows of which
the log has only some columns are 'c' (changed) and 'm' (moved: the key changes): `thl_has` has a bit per column, and
k0, k1 … are the old key. The absent values of a moved row are read from the table first; the row is then deleted and
inserted, so that rows can swap keys.

Rows of a table without a key are deleted by comparing their text, `ROW(…)::text`. Every type of the applier prints
different values differently, NULL and '' too; and text can be hashed, unlike `IS NOT DISTINCT FROM` and json. Of equal
rows as many are deleted as the log has. That reads the table once per batch. Metadata columns are not compared; if the
table has them, rows of the newest transactions are deleted first, as within a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import psycopg

from connector.errors import TargetDiffers, TargetUnavailable
from connector.log.transaction.layout import TableLayout, TableName
from connector.targets.ddl.loads import NOT_LOADED
from connector.targets.marks import Marks
from connector.targets.postgres.marks import is_marked, marks_name
from connector.targets.postgres.names import column_name, column_names, table_name

DEFERRED: Final = "SET CONSTRAINTS ALL DEFERRED"


@dataclass(slots=True)
class Counts:
    """The number of staged rows of each operation."""

    deletes: int = 0
    updates: int = 0
    inserts: int = 0
    changed: int = 0
    moved: int = 0

    @property
    def total(self) -> int:
        """The sum."""
        return self.deletes + self.updates + self.inserts + self.changed + self.moved


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The deviations of a table's rows from the log that a merge tolerates.

    Args:
        again: rows to delete or change may be missing.
        replaces: rows to insert may be there, and are replaced.
        marked: the marks, if the table also has rows that are older than its load. What holds a value of a new row in
            a unique index is deleted unless it is marked.
    """

    again: bool = False
    replaces: bool = False
    marked: Marks | None = None


STRICT: Final = Tolerance()


@dataclass(frozen=True, slots=True)
class LateValues:
    """Values that are known only at the end of an event, as expressions.

    Args:
        metadata: of the metadata columns.
        event: of the last column of a history, its commit time.
    """

    metadata: tuple[str, ...]
    event: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A statement.

    Args:
        sql: its text.
        done: its effect in words, for errors.
        expected: the number of rows that it must affect; None: any number.
        table: the table of the source that it changes, if it does.
        hint: the way out if the number differs.
    """

    sql: str
    done: str = ""
    expected: int | None = None
    table: TableName | None = None
    hint: str = ""


def run_steps(session: psycopg.Connection, steps: Sequence[Step]) -> None:
    """Run statements in one round trip, and compare the number of rows of each with the expected one.

    Raises:
        TargetDiffers: a number differs.
        psycopg.Error: of a statement.
    """
    if not steps:
        return
    cursor = session.cursor()
    cursor.execute(";\n".join(step.sql for step in steps).encode())
    for step in steps:
        if step.expected is not None and cursor.rowcount != step.expected:
            what = f"{cursor.rowcount} rows were {step.done}, and the log has {step.expected}"
            differs = TargetDiffers(what, hint=step.hint)
            differs.tables = () if step.table is None else (step.table,)
            raise differs
        cursor.nextset()


def commit(session: psycopg.Connection) -> None:
    """Commit the session's transaction.

    Raises:
        TargetUnavailable: an earlier error, which was not looked at, had aborted it: COMMIT then rolls back.
        psycopg.Error: the commit failed.
    """
    answer = session.execute("COMMIT").statusmessage
    if answer != "COMMIT":
        raise TargetUnavailable(
            f"PostgreSQL answers COMMIT with {answer}: an error had aborted the transaction before",
            hint="nothing of it was applied; thl apply tries again",
        )


def merge(
    layout: TableLayout,
    staging: str,
    counts: Counts,
    *,
    own: int,
    metadata: Sequence[str] = (),
    tolerance: Tolerance = STRICT,
) -> Iterator[Step]:
    """The steps of a merge: absent values of moved rows, then deletes, updates and inserts.

    Args:
        layout: the layout of the staged rows.
        staging: the staging table.
        counts: the number of rows of each operation.
        own: the number of the source's columns; the metadata columns follow.
        metadata: expressions for the metadata columns, if all rows are of one transaction that set them at its end.
        tolerance: what the rows of the table may be before.
    """
    name = table_name(layout.name)
    columns = [column_name(column.name) for column in layout.columns]
    key = " AND ".join(f"t.{columns[index]} = s.c{index}" for index in layout.key)
    base = " AND ".join(f"t.{columns[index]} = s.k{position}" for position, index in enumerate(layout.key))
    others = [index for index in range(len(columns)) if index not in layout.key]
    staged = [*(f"c{index}" for index in range(len(columns) - len(metadata))), *metadata]
    values = [*(f"s.c{index}" for index in range(len(columns) - len(metadata))), *metadata]
    marked = tolerance.marked

    def new_or_old(index: int) -> str:
        return f"CASE WHEN get_bit(s.thl_has, {index}) = 1 THEN {values[index]} ELSE t.{columns[index]} END"

    if counts.moved:
        kept = ", ".join(f"c{index} = {new_or_old(index)}" for index in others or layout.key)
        whole = "" if marked is None or not marked.name else f" AND {is_marked(marked.name, old_keys(layout, marked))}"
        sql = f"UPDATE {staging} s SET {kept} FROM {name} t WHERE s.thl_op = 'm' AND {base}{whole}"
        hint = NOT_LOADED if tolerance.again else ""
        yield Step(sql, f"found in {layout.name} that get another key", counts.moved, layout.name, hint)
        yield Step(
            f"DELETE FROM {name} t USING {staging} s WHERE s.thl_op = 'm' AND {base}",
            f"deleted from {layout.name}",
            counts.moved,
            layout.name,
        )
        if tolerance.again:
            yield Step(f"DELETE FROM {name} t USING {staging} s WHERE s.thl_op = 'm' AND {key}", table=layout.name)
    if counts.deletes:
        if layout.key:
            sql = f"DELETE FROM {name} t USING {staging} s WHERE s.thl_op = 'd' AND {key}"
        else:
            sql = _delete_equal(name, columns, own, staging)
        expected = None if tolerance.again else counts.deletes
        yield Step(sql, f"deleted from {layout.name}", expected, layout.name)
    if marked is not None:
        yield from _delete_holders(layout, staging, name, columns, marked, partial=counts.changed > 0)
    if counts.updates:
        assignments = ", ".join(f"{columns[index]} = {values[index]}" for index in others or layout.key)
        sql = f"UPDATE {name} t SET {assignments} FROM {staging} s WHERE s.thl_op = 'u' AND {key}"
        yield Step(sql, f"updated in {layout.name}", counts.updates, layout.name)
    if counts.changed:
        assignments = ", ".join(f"{columns[index]} = {new_or_old(index)}" for index in others or layout.key)
        sql = f"UPDATE {name} t SET {assignments} FROM {staging} s WHERE s.thl_op = 'c' AND {base}"
        expected = None if tolerance.again else counts.changed
        yield Step(sql, f"changed in {layout.name}", expected, layout.name)
    if counts.inserts or counts.moved:
        into = column_names(column.name for column in layout.columns)
        which = "IN ('i', 'm')" if counts.moved else "= 'i'"
        sql = f"INSERT INTO {name} ({into}) SELECT {', '.join(staged)} FROM {staging} WHERE thl_op {which}"
        if tolerance.replaces:
            assignments = ", ".join(f"{columns[index]} = excluded.{columns[index]}" for index in others)
            conflict = ", ".join(columns[index] for index in layout.key)
            sql += f" ON CONFLICT ({conflict}) DO {f'UPDATE SET {assignments}' if others else 'NOTHING'}"
        expected = None if tolerance.replaces and not others else counts.inserts + counts.moved
        yield Step(sql, f"inserted into {layout.name}", expected, layout.name)
        if marked is not None and marked.name:
            new = ", ".join(f"c{index}" for index in marked.key)
            sql = f"INSERT INTO {marks_name(marked.name)} SELECT {new} FROM {staging} WHERE thl_op {which}"
            yield Step(f"{sql} ON CONFLICT DO NOTHING", table=layout.name)


def old_keys(layout: TableLayout, marked: Marks) -> list[str]:
    """The columns of staging with the old key of a partial row, in the order of the marks."""
    return [f"s.k{layout.key.index(index)}" for index in marked.key]


def _delete_holders(
    layout: TableLayout, staging: str, name: str, columns: list[str], marked: Marks, *, partial: bool
) -> Iterator[Step]:
    """Delete rows that are older than the load and hold a value that a new row has in a unique index.

    The source has no such row: it is read later, or has gone. Of a changed row the table has the values that the log
    lacks.
    """
    own = " AND ".join(f"o.{columns[index]} = s.k{place}" for place, index in enumerate(layout.key))
    itself = " AND ".join(f"t.{columns[index]} = o.{columns[index]}" for index in layout.key)
    older = f"NOT {is_marked(marked.name, (f't.{columns[index]}' for index in marked.key))}" if marked.name else "TRUE"
    for unique in marked.unique_keys:
        same = " AND ".join(f"t.{columns[index]} = s.c{index}" for index in unique)
        sql = f"DELETE FROM {name} t USING {staging} s WHERE s.thl_op IN ('i', 'm') AND {same} AND {older}"
        yield Step(sql, table=layout.name)
        if not partial:
            continue
        has = {index: f"get_bit(s.thl_has, {index}) = 1" for index in unique}
        present = " OR ".join(has.values())
        same = " AND ".join(
            f"t.{columns[index]} = CASE WHEN {has[index]} THEN s.c{index} ELSE o.{columns[index]} END"
            for index in unique
        )
        sql = (
            f"DELETE FROM {name} t USING {staging} s, {name} o WHERE s.thl_op = 'c' AND {own} AND ({present}) "
            f"AND {same} AND {older} AND NOT ({itself})"
        )
        yield Step(sql, table=layout.name)


def _delete_equal(name: str, columns: list[str], own: int, staging: str) -> str:
    there = ", ".join(f"t.{column}" for column in columns[:own])
    gone = ", ".join(f"c{index}" for index in range(own))
    newest = f" ORDER BY t.{columns[own]} DESC NULLS LAST" if own < len(columns) else ""
    return (
        f"WITH gone AS (SELECT ROW({gone})::text AS image, count(*) AS copies "
        f"FROM {staging} WHERE thl_op = 'd' GROUP BY 1), "
        f"found AS (SELECT t.ctid AS row_id, g.copies, row_number() OVER (PARTITION BY g.image{newest}) AS nth "
        f"FROM {name} t JOIN gone g ON ROW({there})::text = g.image) "
        f"DELETE FROM {name} t USING found f WHERE t.ctid = f.row_id AND f.nth <= f.copies"
    )
