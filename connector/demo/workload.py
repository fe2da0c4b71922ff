"""A mixed workload on the shop from several connections.

Every worker is a thread with a connection and a seed of its own. Table names that DDL changes are looked up at each
transaction. A transaction that loses the race against a RENAME is tried again, as an application would.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import pymysql
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from connector.clock import Clock
from connector.demo import rows
from connector.demo.shop import SCHEMA, TABLES
from connector.demo.traffic import INSERT_CUSTOMER, INSERT_PRODUCT, KINDS, Kind

# Can't connect, server gone away, lost connection, server shutdown in progress.
_GONE: Final = frozenset({2002, 2003, 2006, 2013, 1053})

Connect = Callable[[], "pymysql.Connection[Any]"]


class _Raced(Exception):
    """Raised when a table was renamed, or two transactions needed the same row: try the transaction again."""


# No decorator: all threads that call a decorated function share its statistics, and clear them for one another.
_RETRYING: Final = Retrying(
    retry=retry_if_exception_type(_Raced), stop=stop_after_attempt(20), wait=wait_random(0, 0.05), reraise=True
)


def connector(host: str, port: int, user: str, password: str) -> Connect:
    """Return a function that connects as old applications do: no strict mode, UTC, no autocommit."""

    def connect() -> pymysql.Connection[Any]:
        return pymysql.connect(
            host=host,
            port=port,
            user=user,
            password=password,
            charset="utf8mb4",
            autocommit=False,
            init_command="SET time_zone='+00:00', sql_mode='NO_ENGINE_SUBSTITUTION'",
        )

    return connect


def create(connect: Connect) -> None:
    """Drop and re-create the shop's database and tables."""
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
        cursor.execute(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {SCHEMA}")
        for table in TABLES:
            cursor.execute(table)


def fill(connect: Connect, *, seed: int, customers: int, products: int, clicks: int) -> None:
    """Insert the rows that exist before the initial load."""
    random = Random(seed)
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {SCHEMA}")
        cursor.executemany(INSERT_CUSTOMER, [rows.customer(random, n) for n in range(customers)])
        cursor.executemany(INSERT_PRODUCT, [rows.product(random, n) for n in range(1, products + 1)])
        cursor.executemany("INSERT INTO clicks VALUES (%s,%s,%s,%s,%s)", [rows.click(random) for _ in range(clicks)])
        connection.commit()


@dataclass
class ShopWorkload:
    """Runs transactions on the shop in several threads.

    Args:
        connect: opens a connection.
        clock: paces the workers.
        seed: seed of the workers' random choices.
        rate: transactions per second and worker.
        kinds: the kinds of transactions to choose from.
    """

    connect: Connect
    clock: Clock
    seed: int
    rate: float
    kinds: Sequence[Kind] = KINDS
    names: dict[str, str] = field(default_factory=lambda: {"payments": "payments", "clicks": "clicks"})
    transactions: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)
    _failure: BaseException | None = None

    def start(self, workers: int) -> None:
        """Start this number of workers, each with its own connection."""
        for number in range(workers):
            thread = threading.Thread(target=self._guard, args=(number,), daemon=True, name=f"workload-{number}")
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop the workers after their current transactions.

        Raises:
            Exception: the error that ended a worker.
        """
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._failure:
            raise self._failure

    def _guard(self, number: int) -> None:
        try:
            self._work(number)
        except BaseException as failure:  # noqa: BLE001  handed to stop(), which raises it
            self._failure = failure

    def _work(self, number: int) -> None:
        random = Random(self.seed * 1000 + number)
        while not self._stop.is_set():
            try:
                self._session(random)
            except pymysql.err.OperationalError as error:
                if error.args[0] not in _GONE:
                    raise
                self._stop.wait(0.2)  # as an application would: the server is gone, ask again

    def _session(self, random: Random) -> None:
        pause = 1 / self.rate
        with self.connect() as connection:
            connection.select_db(SCHEMA)
            while not self._stop.is_set():
                began = self.clock.monotonic()
                _RETRYING(_transaction, connection, random.choice(self.kinds), random, self.names)
                with self._lock:
                    self.transactions += 1
                self._stop.wait(max(0.0, pause - (self.clock.monotonic() - began)))


def _transaction(connection: pymysql.Connection[Any], kind: Kind, random: Random, names: dict[str, str]) -> None:
    """Run one transaction; _Raced after a deadlock or a rename of its table."""
    try:
        with connection.cursor() as cursor:
            kind(cursor, random, names)
        connection.commit()
    except (pymysql.err.OperationalError, pymysql.err.ProgrammingError, pymysql.err.InternalError) as error:
        if error.args[0] in _GONE:
            raise
        connection.rollback()
        if error.args[0] in {1146, 1205, 1213, 1412}:  # no such table, lock timeout, deadlock, definition changed
            raise _Raced from error
        raise
