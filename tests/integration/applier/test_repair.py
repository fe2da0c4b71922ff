"""`thl verify --repair`: rows that somebody has changed on a target are mended through the log, under load."""

from __future__ import annotations

import itertools
import json
import os
import random
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from connector.mysql.server.connection import query
from tests.integration.applier.test_loads_from_mysql import SETTINGS, Copy
from tests.support.apply_process import THL, Process
from tests.support.long import long
from tests.support.producing import Bench, until
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer
from tests.support.written_tables import connection_to, transactions

ROWS = 4000  # of each table; the writers change even keys from 1200 on, and insert and delete from 20,000 on
TABLES = {
    "users": "id INT PRIMARY KEY, mail VARCHAR(40) NOT NULL, v VARCHAR(60)",
    "pair": "b VARCHAR(20) CHARACTER SET latin1, v VARCHAR(60), a DATETIME(3), PRIMARY KEY (a, b)",
    "ledger": "n INT, v VARCHAR(60)",  # without a key, so that an event that is applied twice shows
}
MISSING, EXTRA, WRONG = range(1, 600, 2), range(90_000, 90_300), range(1000, 1400)
SWAPPED = 200  # of those that are wrong, the first: values of a unique index are changed with those of a neighbour


class SqliteCopy:
    """A file that an applier keeps equal to the source: `Copy`, with SQLite."""

    def __init__(self, bench: Bench, postgres: DatabaseServer) -> None:
        self.inner = Copy(bench, postgres)
        self.path = bench.folder / "copy.db"
        document = yaml.safe_load(self.inner.file.read_text())
        document["target"] = {"url": f"sqlite:///{self.path}"}
        self.file = self.inner.file
        self.file.write_text(yaml.safe_dump(document))
        self.bench = bench

    def applier(self) -> Process:
        return self.inner.applier()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, timeout=60, isolation_level=None)) as db:
            return db.execute(sql).fetchall()

    def name(self, table: str) -> str:
        return f'"{self.bench.service}.{table}"'

    def has(self, table: str) -> bool:
        found = "SELECT name FROM sqlite_master WHERE name = "
        return self.path.exists() and bool(self.query(f"{found}'{self.bench.service}.{table}'"))

    def position(self) -> tuple[Any, ...]:
        return self.query("SELECT consistent FROM thl_position")[0]


class PostgresCopy(Copy):
    """`Copy`, by the names that the test has for both."""

    def name(self, table: str) -> str:
        return f'"{self.bench.service}".{table}'

    def position(self) -> tuple[Any, ...]:
        return self.query("SELECT consistent::int FROM thl.thl_position")[0]


AnyCopy = SqliteCopy | PostgresCopy


def fill(bench: Bench) -> None:
    name = bench.service
    bench.sql(f"CREATE DATABASE {name}")
    for table, columns in TABLES.items():
        bench.sql(f"CREATE TABLE {name}.{table} ({columns})")
    users = ", ".join(f"({n}, 'm{n}', 'v')" for n in range(ROWS))
    pairs = ", ".join(f"('k{n}', 'v', '2026-01-01' + INTERVAL {n % 100} SECOND)" for n in range(ROWS))
    bench.sql(f"INSERT INTO {name}.users VALUES {users}; INSERT INTO {name}.pair VALUES {pairs}")


def damage(copy: AnyCopy) -> None:
    """300 rows missing, 300 too many, 400 wrong of `users`, unique values swapped among them; and some of `pair`."""
    users, pair = copy.name("users"), copy.name("pair")
    odd = ", ".join(map(str, MISSING))
    # Each of these takes the value of a row that is missing, and so stands in its way.
    taken = ", ".join(f"({n}, 'm{gone}', 'extra')" for n, gone in zip(EXTRA, MISSING, strict=True))
    wrong = f"id BETWEEN {WRONG.start} AND {WRONG.stop - 1}"
    swapped = f"id BETWEEN {WRONG.start} AND {WRONG.start + SWAPPED - 1}"
    statements = [
        f"DELETE FROM {users} WHERE id IN ({odd})",
        f"INSERT INTO {users} VALUES {taken}",
        f"UPDATE {users} SET v = 'wrong' WHERE {wrong}",
        f"UPDATE {users} SET mail = 'x' || id WHERE {swapped}",
        f"UPDATE {users} SET mail = 'm' || (id + 1) WHERE {swapped} AND id % 2 = 0",
        f"UPDATE {users} SET mail = 'm' || (id - 1) WHERE {swapped} AND id % 2 = 1",
        f"DELETE FROM {pair} WHERE b IN ('k1', 'k3')",
        f"UPDATE {pair} SET v = 'wrong' WHERE b IN ('k5', 'k7')",
        f"INSERT INTO {pair} SELECT 'K9', v, a FROM {pair} WHERE b = 'k9'",  # the source takes them for one
        f"INSERT INTO {pair} SELECT 'é''\\', v, a FROM {pair} WHERE b = 'k9'",
    ]
    for statement in statements:
        copy.query(statement)


@contextmanager
def writing(bench: Bench) -> Iterator[None]:
    """Write rows of all tables meanwhile, wrong ones among them, and each number once into the ledger."""
    entries = itertools.count()

    def write(connection: Any, chosen: random.Random) -> None:
        entry = next(entries)
        key, high = 2 * chosen.randrange(600, ROWS // 2), 20_000 + chosen.randrange(3000)
        query(connection, f"UPDATE users SET v = 'w{entry}' WHERE id = {key}")
        query(connection, f"INSERT IGNORE INTO users VALUES ({high}, 'm{high}', 'new')")
        query(connection, f"DELETE FROM users WHERE id = {20_000 + chosen.randrange(3000)}")
        query(connection, f"UPDATE pair SET v = 'w{entry}' WHERE b = 'k{2 * chosen.randrange(20)}'")
        query(connection, f"INSERT INTO ledger VALUES ({entry}, 'v')")

    with transactions(bench, write, writers=2, pause=0.02):
        yield


def verify(copy: AnyCopy, *options: str) -> tuple[int, dict[str, Any]]:
    environment = {**os.environ, **copy.bench.environment}
    command = [THL, "verify", "--config", str(copy.file), "--format", "json", *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def both(copy: AnyCopy, table: str, columns: str) -> tuple[Counter[Any], Counter[Any]]:
    """The rows of both sides, by SELECTs of the test's own."""
    with connection_to(copy.bench) as connection:
        name = f"{copy.bench.service}.{table}"
        source = Counter(tuple(map(str, row.values())) for row in query(connection, f"SELECT {columns} FROM {name}"))
    target = Counter(tuple(map(str, row)) for row in copy.query(f"SELECT {columns} FROM {copy.name(table)}"))
    return source, target


@pytest.mark.parametrize("kind", [PostgresCopy, *long(SqliteCopy)])
def test_thousand_rows_changed_on_the_target_are_mended_under_load(
    kind: type[Any], mysql_server: SqlServer, kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=SETTINGS)
    fill(bench)
    copy: AnyCopy = kind(bench, postgres_server)
    with bench.start() as producing:
        producing.loaded()
        bench.sql(f"CREATE TABLE {bench.service}.first_one (id INT PRIMARY KEY)")
        process = copy.applier()
        try:
            until(lambda: process.popen.poll() is not None or copy.has("first_one"))
            copy.query(f"CREATE UNIQUE INDEX by_user ON {copy.name('users')} (mail)")
            with writing(bench):
                damage(copy)
                code, before = verify(copy, "--stall-timeout", "30")
                assert (code, before["verdict"]) == (9, "different")
                began = time.monotonic()
                code, after = verify(copy, "--repair", "--stall-timeout", "60")
                repaired_in = time.monotonic() - began
            assert (code, after["verdict"], after["not_repaired"]) == (0, "equal", {}), after
            bench.sql(f"CREATE TABLE {bench.service}.last_one (id INT PRIMARY KEY)")
            until(lambda: process.popen.poll() is not None or copy.has("last_one"))
            assert process.popen.poll() is None, process.log.read_text()[-3000:]
        finally:
            process.popen.terminate()
            process.wait()
        assert producing.stop() == 0, producing.text
    users = after["repaired"][f"{bench.service}.users"]
    pair = after["repaired"][f"{bench.service}.pair"]
    # The stream itself has mended some wrong rows, not swapped ones.
    assert (users["missing"], users["extra"]) == (len(MISSING), len(EXTRA))
    assert SWAPPED + (len(WRONG) - SWAPPED) // 2 <= users["changed"] <= len(WRONG)
    assert (pair["missing"], pair["extra"]) == (2, 2)
    assert pair["changed"] == 2
    print(after["repaired"], f"{repaired_in:.1f} s")
    for table, columns in (("users", "id, mail, v"), ("pair", "b, v"), ("ledger", "n, v")):
        source, target = both(copy, table, columns)
        assert target == source, table
    assert copy.position() == (1,)
    assert "repaired a table" in producing.text
