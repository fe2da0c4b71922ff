"""An append-only table without a key: an event applied twice or not at all changes its number of rows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from random import Random
from typing import Final

from pymysql.cursors import Cursor

from connector.demo.shop import SCHEMA
from connector.demo.workload import Connect

CREATE: Final = "CREATE TABLE journal (entry BIGINT NOT NULL, note VARCHAR(2000) NOT NULL)"
FLOOD_ROWS: Final = 2400  # of 2000 bytes: more than the applier keeps in memory of an unfinished event
_numbers = count()


def create(connect: Connect) -> None:
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute(CREATE)


def append(cursor: Cursor, random: Random, names: Mapping[str, str]) -> None:
    """Inserts four rows, one of them into another table, in one transaction."""
    entry = next(_numbers)
    cursor.executemany("INSERT INTO journal VALUES (%s, %s)", [(entry, f"line {n}") for n in range(4)])
    cursor.execute("UPDATE products SET rating = %s WHERE id = %s", (entry % 100, random.randrange(1, 200)))


def flood(connect: Connect) -> None:
    """Inserts one transaction that needs several Kafka transactions, batches and stagings."""
    entry = next(_numbers)
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {SCHEMA}")
        for first in range(0, FLOOD_ROWS, 400):
            rows = [(entry, f"{n} ".ljust(2000, "x")) for n in range(first, first + 400)]
            cursor.executemany("INSERT INTO journal VALUES (%s, %s)", rows)
        connection.commit()


def define(connect: Connect) -> None:
    """Creates a table and changes it, each statement an event of its own; a ring of renames among them."""
    name = f"defined{next(_numbers)}"
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {SCHEMA}")
        for statement in (
            f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20), UNIQUE KEY (v))",
            f"CREATE TABLE {name}_b LIKE {name}",
            f"INSERT INTO {name} VALUES (1, 'one'), (2, 'two')",
            f"RENAME TABLE {name} TO {name}_c, {name}_b TO {name}, {name}_c TO {name}_b",
            f"ALTER TABLE {name}_b ADD n INT NOT NULL DEFAULT 7, ADD KEY (n)",
            f"TRUNCATE TABLE {name}_b",
            f"INSERT INTO {name}_b VALUES (3, 'three', 3)",
            f"DROP TABLE {name}",
        ):
            cursor.execute(statement)
            connection.commit()


def prepare(connect: Connect) -> None:
    """Inserts rows in XA transactions: two are committed, one between them is rolled back."""
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {SCHEMA}")
        for end in ("COMMIT", "ROLLBACK", "COMMIT"):
            entry = next(_numbers)
            cursor.execute("XA START %s", (f"journal-{entry}",))
            cursor.executemany("INSERT INTO journal VALUES (%s, %s)", [(entry, f"line {n}") for n in range(4)])
            for step in ("END", "PREPARE", end):
                cursor.execute(f"XA {step} %s", (f"journal-{entry}",))
