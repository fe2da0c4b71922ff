"""An append-only table without a key: what is applied twice, or not at all, shows as a row too many or too few."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from random import Random
from typing import Final

from pymysql.cursors import Cursor

from connector.demo.load import Connect
from connector.demo.shop import SCHEMA

CREATE: Final = "CREATE TABLE journal (entry BIGINT NOT NULL, note VARCHAR(40) NOT NULL)"
_numbers = count()


def create(connect: Connect) -> None:
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute(CREATE)


def append(cursor: Cursor, random: Random, names: Mapping[str, str]) -> None:
    """Four rows, with one from another table in the same transaction."""
    entry = next(_numbers)
    cursor.executemany("INSERT INTO journal VALUES (%s, %s)", [(entry, f"line {n}") for n in range(4)])
    cursor.execute("UPDATE products SET rating = %s WHERE id = %s", (entry % 100, random.randrange(1, 200)))
