"""Compares tables of source and PostgreSQL target by checksums that both servers compute.

Quick enough for many large tables; only for columns that both servers print alike: integers, decimals, strings.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from connector.demo.workload import Connect

_SOURCE = "SELECT COUNT(*), SUM(CAST(CONV(LEFT(SHA2({row}, 256), 8), 16, 10) AS UNSIGNED)) FROM {table}"
_TARGET = (
    "SELECT count(*), sum(('x' || left(encode(sha256(convert_to({row}, 'UTF8')), 'hex'), 8))::bit(32)::bigint) "
    "FROM {table}"
)
_ARGUMENTS = 50  # a function of PostgreSQL has 100 at most


def difference(connect: Connect, dsn: str, tables: Sequence[str], columns: Sequence[str]) -> str:
    """The reason why tables differ; empty if they are equal.

    Args:
        connect: to the source.
        dsn: address of the target.
        tables: `schema.table`; all have the columns.
        columns: those that are compared.
    """
    parts = [columns[first : first + _ARGUMENTS] for first in range(0, len(columns), _ARGUMENTS)]
    row = _joined([_joined(part) for part in parts])
    with connect() as connection, connection.cursor() as cursor, psycopg.connect(dsn, autocommit=True) as target:
        for table in tables:
            cursor.execute(_SOURCE.format(row=row, table=table))
            here = [int(number or 0) for number in cursor.fetchall()[0]]
            found = target.execute(_TARGET.format(row=row, table=table).encode()).fetchone()
            there = [int(number or 0) for number in found or ()]
            if here != there:
                return f"{table} is {here} on the source and {there} on the target"
    return ""


def _joined(values: Sequence[str]) -> str:
    return f"concat_ws('|', {', '.join(values)})"
