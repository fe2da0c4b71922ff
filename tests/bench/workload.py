"""The benchmarks' tables and transactions: ten mixed columns, 200-300 bytes a row, made inside the server, seeded.

`bulk` is INSERTs in transactions of 1,000 rows. `oltp` is transactions of five row changes each: three inserts, an
update and a delete, on keys that are not hot.
"""

from __future__ import annotations

import threading

from connector.demo.load import Connect

SCHEMA = "bench"

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
    DELETE FROM oltp WHERE id = GREATEST(first + 1, n - 6001);
    COMMIT;
    SET t = t + 1;
  END WHILE;
END"""

BULK = f"""CREATE PROCEDURE bulk(first BIGINT, transactions INT, size INT)
BEGIN
  DECLARE t INT DEFAULT 0;
  WHILE t < transactions DO
    INSERT INTO bulk SELECT first + t * size + n, {_VALUES.format(n="(first + t * size + n)")}
      FROM numbers WHERE n < size;
    SET t = t + 1;
  END WHILE;
END"""


def values(n: str) -> str:
    """The columns after `id` as an SQL list, made from the number that `n` says."""
    return _VALUES.format(n=n)


def create(connect: Connect) -> None:
    """The tables and procedures, empty; `numbers` has a million rows and is not captured."""
    digits = "(SELECT 0 d" + "".join(f" UNION ALL SELECT {n}" for n in range(1, 10)) + ")"
    cross = ", ".join(f"{digits} d{n}" for n in range(6))
    number = "d0.d + 10*d1.d + 100*d2.d + 1000*d3.d + 10000*d4.d + 100000*d5.d"
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"CREATE DATABASE {SCHEMA}")
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute("CREATE TABLE numbers (n INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO numbers SELECT {number} FROM {cross}")
        connection.commit()
        for procedure in (OLTP, BULK):
            cursor.execute(procedure)
        cursor.execute("SET SESSION sql_log_bin = 1")
        for name in ("oltp", "bulk"):
            cursor.execute(TABLE.format(name=name))


def bulk(connect: Connect, *, first: int, rows: int, size: int = 1000) -> None:
    """`rows` rows in transactions of `size` (at most a million)."""
    _call(connect, "CALL bulk(%s, %s, %s)", (first, rows // size, size))


def oltp(connect: Connect, *, first: int, transactions: int, connections: int = 2) -> None:
    """Transactions of five row changes, from several connections."""
    share = transactions // connections
    threads = [
        threading.Thread(target=_call, args=(connect, "CALL oltp(%s, %s)", (first + n * share * 3, share)))
        for n in range(connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _call(connect: Connect, sql: str, arguments: tuple[int, ...]) -> None:
    with connect() as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute(sql, arguments)
