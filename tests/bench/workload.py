"""The benchmarks' tables and transactions: ten mixed columns, 200-300 bytes a row, generated in the server, seeded.

- `bulk`: INSERTs in transactions of 1,000 rows.
- `oltp`: transactions of five row changes: three inserts, an update of a row 1,000 transactions old, a delete of one
  2,000 old. Within a batch of the applier most of them meet again and collapse.
- `cold`: a table of rows first; then transactions of two inserts, two updates and a delete whose keys lie all over
  that table and which no other statement touches: nothing of it collapses.

Every transaction changes exactly as many rows as is said here, so that a run knows when it has seen all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from connector.demo.workload import Connect

SCHEMA = "bench"
KINDS = ("bulk", "oltp", "cold")
CHANGES = 5  # of a transaction of oltp and cold
NUMBERS = 1_000_000

TABLE = """CREATE TABLE {name} (
    id BIGINT UNSIGNED NOT NULL PRIMARY KEY, a INT NOT NULL, b BIGINT NULL, c DECIMAL(18,4) NOT NULL,
    d DATETIME(6) NOT NULL, e TIMESTAMP NULL, f DOUBLE NOT NULL, g VARCHAR(100) NOT NULL, h CHAR(20) NULL,
    i VARBINARY(60) NULL)"""

_VALUES = (
    "{n} * 7 % 2147483647, {n} * 1000003, ({n} % 1000000) / 13, '2026-01-02 03:04:05.678901' + INTERVAL {n} SECOND,"
    " IF({n} % 5 = 0, NULL, '2026-01-01 00:00:00' + INTERVAL {n} SECOND), {n} / 7,"
    " REPEAT(LEFT(SHA2({n}, 256), 32), 3), RIGHT(SHA2({n}, 256), 20),"
    " IF({n} % 3 = 0, NULL, UNHEX(REPEAT(LEFT(SHA2({n}, 256), 32), 3)))"
)

# Deletes are of ids that leave 2 when divided by 3, or 1 at the beginning; updates of those that are divisible.
OLTP = f"""CREATE PROCEDURE oltp(first BIGINT, transactions INT)
BEGIN
  DECLARE t INT DEFAULT 0;
  DECLARE n BIGINT;
  WHILE t < transactions DO
    SET n = first + t * 3;
    START TRANSACTION;
    INSERT INTO oltp VALUES (n, {_VALUES.format(n="n")});
    INSERT INTO oltp VALUES (n + 1, {_VALUES.format(n="n")});
    INSERT INTO oltp VALUES (n + 2, {_VALUES.format(n="n")});
    UPDATE oltp SET a = a + 1, g = REVERSE(g) WHERE id = GREATEST(first, n - 3000);
    DELETE FROM oltp WHERE id = IF(t < 2001, n + 1, n - 6001);
    COMMIT;
    SET t = t + 1;
  END WHILE;
END"""

# A prime that is larger than any table here: its multiples meet every key once before they meet one again.
_PRIME = 7368787

# Updates are of even ids, deletes of odd ones, both of the first `size`.
COLD = f"""CREATE PROCEDURE cold(size BIGINT, first BIGINT, transactions BIGINT)
BEGIN
  DECLARE t BIGINT DEFAULT first;
  DECLARE n BIGINT;
  WHILE t < first + transactions DO
    SET n = size + t * 2;
    START TRANSACTION;
    INSERT INTO cold VALUES (n, {_VALUES.format(n="n")});
    INSERT INTO cold VALUES (n + 1, {_VALUES.format(n="n")});
    UPDATE cold SET a = a + 1, g = REVERSE(g) WHERE id = 2 * (t * 2 * {_PRIME} % (size DIV 2));
    UPDATE cold SET a = a + 1, g = REVERSE(g) WHERE id = 2 * ((t * 2 + 1) * {_PRIME} % (size DIV 2));
    DELETE FROM cold WHERE id = 2 * (t * {_PRIME} % (size DIV 2)) + 1;
    COMMIT;
    SET t = t + 1;
  END WHILE;
END"""

BULK = """CREATE PROCEDURE {name}(first BIGINT, transactions INT, size INT)
BEGIN
  DECLARE t INT DEFAULT 0;
  WHILE t < transactions DO
    INSERT INTO {table} SELECT first + t * size + n, {values}
      FROM aid.numbers WHERE n < size;
    SET t = t + 1;
  END WHILE;
END"""
_BULK_VALUES = _VALUES.format(n="(first + t * size + n)")


@dataclass(frozen=True, slots=True)
class Backlog:
    """The content of the source's binary log.

    Args:
        rows: row changes in all.
        events: transactions in all, those that define tables not counted.
        before: row changes that come first and are not what is to be measured.
    """

    rows: int
    events: int
    before: int = 0


def values(n: str) -> str:
    """The columns after `id` as an SQL list, derived from the number `n`."""
    return _VALUES.format(n=n)


def create(connect: Connect) -> None:
    """Create tables and procedures, empty; `aid.numbers`, the source of rows, has a million and is not captured."""
    digits = "(SELECT 0 d" + "".join(f" UNION ALL SELECT {n}" for n in range(1, 10)) + ")"
    cross = ", ".join(f"{digits} d{n}" for n in range(6))
    number = "d0.d + 10*d1.d + 100*d2.d + 1000*d3.d + 10000*d4.d + 100000*d5.d"
    procedures = (OLTP, COLD, *(BULK.format(name=n, table=t, values=_BULK_VALUES) for n, t in _BULKS.items()))
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"CREATE DATABASE {SCHEMA}")
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute("CREATE DATABASE aid")
        cursor.execute("CREATE TABLE aid.numbers (n INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO aid.numbers SELECT {number} n FROM {cross} ORDER BY n")
        connection.commit()
        for procedure in procedures:
            cursor.execute(procedure)
        cursor.execute("SET SESSION sql_log_bin = 1")
        for name in KINDS:
            cursor.execute(TABLE.format(name=name))


_BULKS = {"bulk": "bulk", "warm": "cold"}


def fill(connect: Connect, kind: str, rows: int) -> Backlog:
    """Fill a backlog of about this many row changes."""
    if kind == "bulk":
        transactions = max(rows // 1000, 1)
        bulk(connect, first=0, rows=transactions * 1000)
        return Backlog(transactions * 1000, transactions)
    transactions = max(rows // CHANGES // 2 * 2, 2)
    if kind == "oltp":
        oltp(connect, first=0, transactions=transactions)
        return Backlog(transactions * CHANGES, transactions)
    size = transactions * 4 // 1000 * 1000 + 1000
    cold(connect, size=size, transactions=transactions)
    return Backlog(size + transactions * CHANGES, size // 1000 + transactions, size)


def bulk(connect: Connect, *, first: int, rows: int, size: int = 1000) -> None:
    """Insert `rows` rows in transactions of `size` (at most a million)."""
    _call(connect, "CALL bulk(%s, %s, %s)", (first, rows // size, size))


def oltp(connect: Connect, *, first: int, transactions: int, connections: int = 2) -> None:
    """Execute transactions of five row changes, from several connections."""
    share = transactions // connections
    _together((connect, "CALL oltp(%s, %s)", (first + number * share * 3, share)) for number in range(connections))


def cold(connect: Connect, *, size: int, transactions: int, connections: int = 2) -> None:
    """Fill a table of `size` rows, then change five random rows per transaction, from several connections."""
    _call(connect, "CALL warm(%s, %s, %s)", (0, size // 1000, 1000))
    share = transactions // connections
    _together((connect, "CALL cold(%s, %s, %s)", (size, number * share, share)) for number in range(connections))


def _together(calls: Iterable[tuple[Connect, str, tuple[int, ...]]]) -> None:
    threads = [threading.Thread(target=_call, args=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _call(connect: Connect, sql: str, arguments: tuple[int, ...]) -> None:
    with connect() as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute(sql, arguments)
