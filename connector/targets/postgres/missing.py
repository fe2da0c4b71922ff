"""Finds what stopped a commit on PostgreSQL: missing rows after a wrong row count, a table after a refused statement.

By then the commit's transaction is rolled back, so its work is repeated up to the table with a missing row; the staging
tables still have their rows. The operations of one staging table are disjoint by key, so every row that they change
exists before the first of them, or is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

import psycopg

from connector.errors import ConnectorError
from connector.log.transaction.layout import TableLayout, TableName
from connector.targets.operations import Operation
from connector.targets.postgres.ddl import run
from connector.targets.postgres.marks import is_marked
from connector.targets.postgres.merge import DEFERRED, Counts, Step, merge, old_keys
from connector.targets.postgres.names import column_name, table_name
from connector.targets.postgres.staging import Staged

T = TypeVar("T")

NAMED: Final = 5
_COUNTED: Final = {"d": "deletes", "u": "updates", "i": "inserts", "c": "changed", "m": "moved"}


@dataclass(frozen=True, slots=True)
class MissingRows:
    """Rows to change that are missing.

    Args:
        table: the table that lacks them.
        rows: some of the rows, by their keys; the whole rows if the table has no key.
    """

    table: TableName
    rows: tuple[str, ...]


def repeated(
    work: Iterable[tuple[psycopg.Connection, Sequence[Staged | Operation]]],
    find: Callable[[psycopg.Connection, Sequence[Staged | Operation]], T | None],
) -> list[T]:
    """Repeat a commit that failed, in each session that has a part of it, and roll it back.

    Args:
        work: the sessions and their parts.
        find: repeats a part until it finds something.

    Returns:
        What it has found.
    """
    found: list[T] = []
    for session, part in work:
        with suppress(ConnectorError, psycopg.Error), session.transaction(force_rollback=True):
            session.execute(DEFERRED)
            found += filter(None, [find(session, part)])
    return found


def missing_rows(connection: psycopg.Connection, work: Iterable[Staged | Operation]) -> MissingRows | None:
    """Repeat a commit's work until a row is missing; the caller rolls it back.

    Args:
        connection: in a transaction.
        work: the staging tables and operations of the commit, in order.
    """
    for item in work:
        if not isinstance(item, Staged):
            run(connection, item)
            continue
        found = _of_keys(connection, item) if item.layout.key else _of_images(connection, item)
        if found:
            return MissingRows(item.layout.name, tuple(found))
        for step in _merge(connection, item):
            connection.execute(step.sql.encode())
    return None


def refused_table(connection: psycopg.Connection, work: Iterable[Staged | Operation]) -> TableName | None:
    """Repeat a commit's work until the server refuses the rows of a table; the caller rolls it back.

    Args:
        connection: in a transaction.
        work: the staging tables and operations of the commit, in order.
    """
    for item in work:
        if not isinstance(item, Staged):
            run(connection, item)
            continue
        try:
            for step in _merge(connection, item):
                connection.execute(step.sql.encode())
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            connection.execute("SET CONSTRAINTS ALL DEFERRED")
        except psycopg.Error:
            return item.layout.name
    return None


def _merge(connection: psycopg.Connection, staged: Staged) -> Iterator[Step]:
    counted = connection.execute(f"SELECT thl_op::text, count(*) FROM {staged.name} GROUP BY 1".encode()).fetchall()
    counts = Counts(**{_COUNTED[letter]: count for letter, count in counted})
    return merge(staged.layout, staged.name, counts, own=staged.own, tolerance=staged.tolerance)


def _of_keys(connection: psycopg.Connection, staged: Staged) -> list[str]:
    layout, tolerance = staged.layout, staged.tolerance
    whole = (
        ""
        if tolerance.marked is None
        else f" AND {is_marked(tolerance.marked.name, old_keys(layout, tolerance.marked))}"
    )
    keys = [] if tolerance.again else [("'d', 'u'", [f"c{index}" for index in layout.key])]
    if staged.partial:
        keys.append(("'m'" if tolerance.again else "'c', 'm'", [f"k{position}" for position in range(len(layout.key))]))
    found: list[str] = []
    for letters, key in keys:
        shown = ", ".join(f"left(s.{column}::text, 100)" for column in key)
        query = (
            f"SELECT {shown} FROM {staged.name} s WHERE s.thl_op IN ({letters}) AND NOT EXISTS "
            f"(SELECT FROM {table_name(layout.name)} t WHERE {_same(layout, key)}{whole}) "
            f"ORDER BY s.ctid LIMIT {NAMED - len(found)}"
        )
        names = [layout.columns[index].name for index in layout.key]
        for row in connection.execute(query.encode()).fetchall():
            found.append(", ".join(f"{name}={value}" for name, value in zip(names, row, strict=True)))
    return found


def _same(layout: TableLayout, key: Sequence[str]) -> str:
    columns = [layout.columns[index] for index in layout.key]
    return " AND ".join(
        f"t.{column_name(column.name)} = s.{staged}" for column, staged in zip(columns, key, strict=True)
    )


def _of_images(connection: psycopg.Connection, staged: Staged) -> list[str]:
    """The rows of which the log deletes more equal copies than the table has."""
    layout = staged.layout
    there = ", ".join(f"t.{column_name(column.name)}" for column in layout.columns[: staged.own])
    gone = ", ".join(f"c{index}" for index in range(staged.own))
    query = (
        f"WITH gone AS (SELECT ROW({gone})::text AS image, count(*) AS copies FROM {staged.name} "
        f"WHERE thl_op = 'd' GROUP BY 1), "
        f"found AS (SELECT g.image, count(*) AS copies FROM {table_name(layout.name)} t "
        f"JOIN gone g ON ROW({there})::text = g.image GROUP BY 1) "
        f"SELECT left(g.image, 200) FROM gone g LEFT JOIN found f USING (image) "
        f"WHERE g.copies > coalesce(f.copies, 0) LIMIT {NAMED}"
    )
    return [str(image) for (image,) in connection.execute(query.encode()).fetchall()]
