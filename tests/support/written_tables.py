"""Tables that several connections write to while they are loaded."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
import pytest

from connector.cli import run as thl
from connector.errors import SourceUnavailable
from connector.mysql.server.connection import connect, query
from tests.support.producing import Bench

ROWS = 3000
WRITERS = 4
TABLES = {
    "t": "id INT PRIMARY KEY, v VARCHAR(60), n INT",
    "text_key": "id VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY, v VARCHAR(60), n INT",
    "pair": "a INT, b INT, v VARCHAR(60), n INT, PRIMARY KEY (a, b)",
    "keyless": "v VARCHAR(60), n INT",
}
UNIQUE = "swapped"  # whose writers swap values that are unique
CONFLICTS = frozenset({1205, 1213})  # a lock's wait, a deadlock: the transaction is given up
LOST = frozenset({0, 2003, 2006, 2013, 1053})  # errors of a session whose server was killed


def on_source(bench: Bench, table: str) -> list[tuple[Any, ...]]:
    with connection_to(bench) as connection:
        return sorted(
            (tuple(row.values()) for row in query(connection, f"SELECT * FROM {bench.service}.{table}")), key=repr
        )


@contextmanager
def connection_to(bench: Bench) -> Iterator[Any]:
    connection: Any = connect(bench.config.source)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def writing(
    bench: Bench, tables: list[str], *, writers: int = WRITERS, pause: float = 0.003, killed: bool = False
) -> Iterator[None]:
    """Write to the tables from several connections: inserts, updates, deletes, changed keys, swapped rows.

    Args:
        bench: the service whose tables they are.
        tables: names of TABLES, and UNIQUE.
        writers, pause, killed: see `transactions`.
    """

    def write(connection: Any, chosen: random.Random) -> None:
        for _ in range(chosen.randint(1, 4)):
            statement(connection, chosen, chosen.choice(tables))

    with transactions(bench, write, writers=writers, pause=pause, killed=killed):
        yield


@contextmanager
def transactions(
    bench: Bench,
    write: Callable[[Any, random.Random], None],
    *,
    writers: int = WRITERS,
    pause: float = 0.003,
    killed: bool = False,
) -> Iterator[None]:
    """Commit transactions in the service's database from several connections; an error of one is raised at the end.

    Args:
        bench: the service.
        write: executes the statements of a transaction; called with a connection, and random choices of its own.
        writers: the number of connections.
        pause: seconds after each transaction.
        killed: the server is killed meanwhile; a writer goes on once it is there again.
    """
    ended = threading.Event()
    failed: list[BaseException] = []

    def commit(number: int) -> None:
        chosen = random.Random(number)
        while not ended.is_set():
            try:
                with connection_to(bench) as connection:
                    query(connection, f"USE {bench.service}")
                    connection.autocommit(False)
                    while not ended.is_set():
                        try:
                            write(connection, chosen)
                        except pymysql.MySQLError as error:
                            if error.args[0] not in CONFLICTS:
                                raise
                            connection.rollback()
                        connection.commit()
                        time.sleep(pause)
            except Exception as error:  # noqa: BLE001 - raised again below
                if not killed or not (isinstance(error, SourceUnavailable | OSError) or _lost(error)):
                    failed.append(error)
                    return
                time.sleep(0.1)

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


def _lost(error: Exception) -> bool:
    return isinstance(error, pymysql.MySQLError) and error.args[:1] != () and error.args[0] in LOST


def statement(connection: Any, chosen: random.Random, table: str) -> None:
    if table == UNIQUE:
        swap(connection, *chosen.sample(range(ROWS), 2))
        return
    number, value = chosen.randrange(ROWS * 2), f"'{chosen.random()}'"
    key = {
        "t": f"id = {number}",
        "text_key": f"id = 'k{number}'",
        "pair": f"a = {number // 50} AND b = {number % 50}",
        "keyless": f"n = {number}",
    }[table]
    insert = {
        "t": f"({number}, {value}, 0)",
        "text_key": f"('k{number}', {value}, 0)",
        "pair": f"({number // 50}, {number % 50}, {value}, 0)",
        "keyless": f"({value}, {number})",
    }[table]
    moved = {
        "t": f"id = {chosen.randrange(ROWS * 2)}",
        "text_key": f"id = 'k{chosen.randrange(ROWS * 2)}'",
        "pair": f"b = {chosen.randrange(50)}",
        "keyless": "n = n + 1",
    }[table]
    sql = chosen.choice(
        [
            f"INSERT IGNORE INTO {table} VALUES {insert}",
            f"UPDATE {table} SET v = {value} WHERE {key}",
            f"UPDATE IGNORE {table} SET {moved} WHERE {key}",
            f"DELETE FROM {table} WHERE {key}",
        ]
    )
    query(connection, sql)


def swap(connection: Any, one: int, other: int) -> None:
    """Give two rows each other's unique value, by NULL."""
    rows = query(connection, f"SELECT id, u FROM {UNIQUE} WHERE id IN ({one}, {other}) ORDER BY id FOR UPDATE")
    query(connection, f"UPDATE {UNIQUE} SET u = NULL WHERE id = {rows[0]['id']}")
    query(connection, f"UPDATE {UNIQUE} SET u = {rows[0]['u'] or 'NULL'} WHERE id = {rows[1]['id']}")
    query(connection, f"UPDATE {UNIQUE} SET u = {rows[1]['u'] or 'NULL'} WHERE id = {rows[0]['id']}")


def fill_unique(bench: Bench) -> None:
    """Create and fill UNIQUE, in the bench's database."""
    bench.sql(
        f"USE {bench.service}; CREATE TABLE {UNIQUE} (id INT PRIMARY KEY, u INT UNIQUE);"
        f"SET SESSION cte_max_recursion_depth = {ROWS + 1}; INSERT INTO {UNIQUE}"
        f" WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS - 1}) SELECT i, i + 7 FROM n"
    )


def fill(bench: Bench, tables: list[str]) -> None:
    bench.sql(f"CREATE DATABASE {bench.service}")
    with connection_to(bench) as connection:
        query(connection, f"USE {bench.service}")
        for table in tables:
            query(connection, f"CREATE TABLE {table} ({TABLES[table]})")
            for first in range(0, ROWS, 500):
                rows = {
                    "t": lambda n: f"({n}, 'v{n}', {n})",
                    "text_key": lambda n: f"('k{n}', 'v{n}', {n})",
                    "pair": lambda n: f"({n // 50}, {n % 50}, 'v{n}', {n})",
                    "keyless": lambda n: f"('v', {n % 7})",
                }[table]
                query(connection, f"INSERT INTO {table} VALUES " + ", ".join(map(rows, range(first, first + 500))))
            query(connection, f"ANALYZE TABLE {table}")


def asked(bench: Bench, *arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in bench.environment.items():
            patched.setenv(name, value)
        return thl(["load", *arguments])
