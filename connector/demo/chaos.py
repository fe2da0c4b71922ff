"""Disturbs replication: one huge transaction, and tables that change meanwhile."""

from __future__ import annotations

from typing import Final

from connector.demo.shop import SCHEMA
from connector.demo.workload import Connect

_DIGITS: Final = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL"
_DIGITS_TABLE: Final = (
    _DIGITS + " SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
)


def huge(connect: Connect, count: int) -> None:
    """Insert `count` rows (at most a million) into order_lines in one transaction."""
    digits = ", ".join(f"{_DIGITS_TABLE} d{n}" for n in range(6))
    number = "d0.d + 10*d1.d + 100*d2.d + 1000*d3.d + 10000*d4.d + 100000*d5.d"
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute(
            "INSERT INTO order_lines SELECT 1000000000 + n, 1, n % 100 + 1, n % 7, n / 1000"
            f" FROM (SELECT {number} AS n FROM {digits}) numbers WHERE n < {int(count)}"
        )
        connection.commit()


def add_column(connect: Connect) -> None:
    """Add a column with a default, which existing rows get."""
    _ddl(connect, "ALTER TABLE orders ADD COLUMN priority TINYINT NOT NULL DEFAULT 7")


def rename_two(connect: Connect, names: dict[str, str]) -> None:
    """Rename two tables in one statement."""
    _ddl(connect, "RENAME TABLE payments TO receipts, clicks TO visits")
    names.update(payments="receipts", clicks="visits")


def make_and_drop(connect: Connect) -> None:
    """Create, fill and drop a table; then create one with CREATE TABLE … SELECT."""
    _ddl(connect, "CREATE TABLE scratch (id INT PRIMARY KEY, note VARCHAR(20) NOT NULL DEFAULT 'x')")
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {SCHEMA}")
        cursor.executemany("INSERT INTO scratch (id) VALUES (%s)", range(100))
        connection.commit()
    _ddl(connect, "DROP TABLE scratch")
    _ddl(connect, "CREATE TABLE regulars (PRIMARY KEY (id)) SELECT id, name, balance FROM customers WHERE id <= 100")


def _ddl(connect: Connect, sql: str) -> None:
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute(sql)
