"""Servers with semi-synchronous replication, and clients that remember what they were told is committed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeAlias

import pymysql

from connector.mysql.server.semi_sync import SemiSyncState, read_state
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.mysqld import Mysqld
from connector.sandbox.settings import MYSQL_FAST
from tests.support import mysql
from tests.support.producing import PATIENCE, until

NEVER = 3_600_000  # milliseconds: a commit that is not acknowledged lasts longer than a test
SMALL = {**MYSQL_FAST, "innodb_buffer_pool_size": "32M"}
SMALL_MYSQL = {**SMALL, "innodb_redo_log_capacity": "32M"}
SERVERS = ("mysql", "mariadb")
Client: TypeAlias = "pymysql.Connection[Any]"


def make_server(kind: str, folder: Path, **settings: str) -> Mysqld:
    if kind == "mariadb":
        return MariaDbServer(folder, settings={**SMALL, **settings}, die_with_parent=True)
    return MySqlServer(folder, settings={**SMALL_MYSQL, **settings}, die_with_parent=True)


def plugin(server: Mysqld) -> str:
    return "rpl_semi_sync_master" if server.name == "mariadb" else "rpl_semi_sync_source"


def enable(server: Mysqld, timeout: int = NEVER) -> None:
    """Commits wait for an acknowledgement, before they are visible."""
    name = plugin(server)
    if server.name != "mariadb":
        server.run_sql("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    server.run_sql(
        f"SET GLOBAL {name}_timeout = {timeout}; SET GLOBAL {name}_wait_point = 'AFTER_SYNC'; "
        f"SET GLOBAL {name}_enabled = ON"
    )


def connect(server: Mysqld, **options: Any) -> pymysql.Connection[Any]:
    return mysql.connect(server, read_timeout=PATIENCE, **options)


def execute(server: Mysqld, *statements: str) -> None:
    with closing(connect(server)) as client, client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def state(server: Mysqld) -> SemiSyncState:
    with closing(connect(server, cursorclass=pymysql.cursors.DictCursor)) as client:
        found = read_state(client)
    assert found is not None
    return found


def waiting(server: Mysqld) -> int:
    """How many commits wait for an acknowledgement."""
    row = server.run_sql(f"SHOW GLOBAL STATUS LIKE '{plugin(server)}_wait_sessions'").splitlines()[1]
    return int(row.split("\t")[1])


class Writers:
    """Clients that insert rows, some many in one transaction, and a reader: what they know of as committed.

    Args:
        server: the source.
        table: `schema.table` with the columns id and v.
        clients: how many write.
    """

    def __init__(self, server: Mysqld, table: str, clients: int = 4) -> None:
        self.told: set[int] = set()
        self.seen: set[int] = set()
        self._server, self._table = server, table
        self._stop, self._source_dies = Event(), Event()
        self._errors: list[Exception] = []
        works: list[Callable[[Client], None]] = [partial(self._write, number) for number in range(clients)]
        self._threads = [Thread(target=self._guard, args=(work,), daemon=True) for work in [*works, self._read]]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def until_told(self, rows: int) -> None:
        until(lambda: len(self.told) >= rows or bool(self._errors))

    def kill_the_source(self) -> None:
        """In the middle of their work."""
        self._source_dies.set()
        self._server.kill()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        assert not self._errors, self._errors

    def _write(self, number: int, client: Client) -> None:
        rng, at = random.Random(number), number * 1_000_000
        while not self._stop.is_set():
            rows = list(range(at + 1, at + 1 + rng.choice((1, 1, 1, 2, 50))))
            with client.cursor() as cursor:
                values = ",".join(f"({row}, 'v{row}')" for row in rows)
                cursor.execute(f"INSERT INTO {self._table} (id, v) VALUES {values}")
            self.told.update(rows)
            at = rows[-1]

    def _read(self, client: Client) -> None:
        while not self._stop.is_set():
            with client.cursor() as cursor:
                cursor.execute(f"SELECT id FROM {self._table}")
                self.seen.update(row[0] for row in cursor.fetchall())
            self._stop.wait(0.02)

    def _guard(self, work: Callable[[Client], None]) -> None:
        """Work on one connection, which ends with the server."""
        try:
            with closing(connect(self._server)) as client:
                work(client)
        except (pymysql.OperationalError, pymysql.InterfaceError) as error:
            if not self._source_dies.is_set():
                self._errors.append(error)


@contextmanager
def writing(server: Mysqld, table: str, clients: int = 4) -> Iterator[Writers]:
    made = Writers(server, table, clients)
    made.start()
    try:
        yield made
    finally:
        made.stop()
