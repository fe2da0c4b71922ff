"""The dimensions of a load along which cost may grow, and the load: transactions of one shape after a warm-up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

from connector.demo.workload import Connect

WARM_ROWS = 300_000  # in the log before what is measured: a JVM is slow at first
FILTER = ["grow*"]
_SIZE = 1000
_TYPES = ("INT", "VARCHAR(24)", "DECIMAL(12,2)", "BIGINT")
_VALUES = ("{n} % 1000000", "CONCAT('value ', {n})", "({n} % 100000) / 7", "{n} * 1000003")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One point of one axis; the defaults are the point that all axes share.

    Args:
        axis: which of the following is varied.
        rows: in all, after the warm-up.
        size: rows of a transaction.
        tables: number of tables of one schema, written in turns, one per transaction.
        columns: number of columns of a table, including the key.
        partitions: number of partitions, and of schemas with one table each, written in turns.
    """

    axis: str = "base"
    rows: int = 500_000
    size: int = _SIZE
    tables: int = 1
    columns: int = 10
    partitions: int = 1

    @property
    def value(self) -> int:
        """The value of the varied dimension."""
        return int(getattr(self, self.axis)) if self.axis != "base" else self.rows

    @property
    def names(self) -> list[str]:
        """The tables, `schema.table`."""
        if self.partitions > 1:
            return [f"grow{number}.t0" for number in range(self.partitions)]
        return [f"grow0.t{number}" for number in range(self.tables)]

    @property
    def column_names(self) -> list[str]:
        """The column names of every table."""
        return ["id", *(f"c{number}" for number in range(1, self.columns))]

    @property
    def transactions(self) -> int:
        """The number of transactions, without the warm-up."""
        return self.rows // self.size


def axes(rows: int, *, ten_million: bool) -> Iterator[Shape]:
    """Every point: the shared one first, then axis by axis."""
    base = Shape(rows=rows)
    yield base
    for amount in (rows // 5, rows * 2, *((10_000_000,) if ten_million else ())):
        yield replace(base, axis="rows", rows=amount)
    for size in (1, 10, 100, 10_000, 100_000, 1_000_000):
        yield replace(base, axis="size", size=size, rows=max(size, rows // 5 if size < 100 else rows))
    for tables in (10, 100, 500):
        yield replace(base, axis="tables", tables=tables)
    for columns in (3, 30, 100, 300):
        fewer = max(rows // 10, rows * 10 // max(columns, 10))
        yield replace(base, axis="columns", columns=columns, rows=fewer // _SIZE * _SIZE)
    for partitions in (4, 16, 32):
        yield replace(base, axis="partitions", partitions=partitions)


def fill(connect: Connect, shape: Shape, warm: int) -> str:
    """Write a binary log file with the tables, the warm-up and the load.

    Returns:
        The file's name: the log begins with it.
    """
    with connect() as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute("SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'grow%%'")
        for (schema,) in cursor.fetchall():
            cursor.execute(f"DROP DATABASE {schema}")
        for schema in sorted({name.partition(".")[0] for name in shape.names}):
            cursor.execute(f"CREATE DATABASE {schema}")
        cursor.execute("SET SESSION sql_log_bin = 1")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        file = str(cursor.fetchall()[-1][0])
        cursor.execute(_table("grow0.warm", 10))
        for name in shape.names:
            cursor.execute(_table(name, shape.columns))
        for first in range(0, warm, _SIZE):
            cursor.execute(_insert("grow0.warm", 10, str(first), str(_SIZE)))
        if len(shape.names) > 1 or shape.transactions < 2:
            for number in range(shape.transactions):
                name = shape.names[number % len(shape.names)]
                cursor.execute(_insert(name, shape.columns, str(number * shape.size), str(shape.size)))
            return file
        # One table and perhaps many transactions: made within the server, from two connections.
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(_procedure(shape))
    half = shape.transactions // 2
    calls = [(0, half), (half, shape.transactions - half)]
    threads = [threading.Thread(target=_call, args=(connect, call)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return file


def _call(connect: Connect, arguments: tuple[int, int]) -> None:
    with connect() as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        cursor.execute("CALL grow0.fill(%s, %s)", arguments)


def _table(name: str, columns: int) -> str:
    others = ", ".join(f"c{number} {_TYPES[number % len(_TYPES)]} NOT NULL" for number in range(1, columns))
    return f"CREATE TABLE {name} (id BIGINT NOT NULL PRIMARY KEY, {others})"


def _insert(name: str, columns: int, first: str, size: str) -> str:
    values = ", ".join(_VALUES[number % len(_VALUES)].format(n=f"({first} + n)") for number in range(1, columns))
    return f"INSERT INTO {name} SELECT {first} + n, {values} FROM aid.numbers WHERE n < {size}"


def _procedure(shape: Shape) -> str:
    insert = _insert(shape.names[0], shape.columns, "first", str(shape.size))
    return f"""CREATE PROCEDURE grow0.fill(start BIGINT, transactions BIGINT)
BEGIN
  DECLARE t BIGINT DEFAULT 0;
  DECLARE first BIGINT;
  WHILE t < transactions DO
    SET first = (start + t) * {shape.size};
    {insert};
    SET t = t + 1;
  END WHILE;
END"""
