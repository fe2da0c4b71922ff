"""`python -m tests.bench.source_commits`: what clients of the source feel of a load, on MySQL 9, MySQL 5.6 and MariaDB.

Their commits are timed while nothing is loaded, and while a table is loaded again and again: without a lock, with a
brief one, and with a statement running meanwhile. Half of the commits are on the table that is loaded. A figure is void
if there was no round, or if there was one where none is possible.
"""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import click

from connector.background import in_background
from connector.mysql.server.connection import connect, query
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from tests.bench.paced_commits import CLIENTS, commits
from tests.bench.result import Row, Sheet, out_option
from tests.support.producing import Bench, Producing
from tests.support.servers.environment import SqlServer
from tests.support.servers.mysql56 import MySql56Server
from tests.support.written_tables import asked, connection_to

DURABLE: Final = {"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1", "innodb_buffer_pool_size": "1G"}
SERVERS: Final[dict[str, Callable[..., Any]]] = {
    "mysql9": MySqlServer,
    "mysql56": MySql56Server,
    "mariadb": MariaDbServer,
}
LONG: Final = 600  # seconds of the statement that runs meanwhile


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: the rows of each table, for how many seconds, at how many commits a second."""

    rows: int
    seconds: float
    rate: int


@dataclass(frozen=True, slots=True)
class Case:
    """What happens while commits are timed.

    Args:
        name: its name in the result.
        lock: `source.snapshot.lock`; "": nothing is loaded.
        long: a statement reads a table meanwhile.
    """

    name: str
    lock: str
    long: bool = False

    def void(self, rounds: int, *, locks_always: bool) -> str:
        """Why the figures do not count."""
        possible = bool(self.lock) and not (self.long and locks_always)  # `brief` falls back to `none`
        return "" if possible == bool(rounds) else f"{rounds} rounds"


CASES: Final = (
    Case("no load", ""),
    Case("load, lock none", "none"),
    Case("load, lock brief", "brief"),
    Case("load, lock none, a long statement", "none", long=True),
    Case("load, lock brief, a long statement", "brief", long=True),
    Case("no load, a long statement", "", long=True),
)


@click.command()
@click.option("--rows", default=500_000, show_default=True, help="Rows of the table that is loaded.")
@click.option("--seconds", default=15.0, show_default=True, help="Duration of each measurement.")
@click.option("--rate", default=200, show_default=True, help="Commits a second of all clients.")
@click.option("--server", "servers", multiple=True, type=click.Choice([*SERVERS]), default=tuple(SERVERS))
@click.option("--repeats", default=1, show_default=True)
@out_option
def main(*, rows: int, seconds: float, rate: int, servers: Sequence[str], repeats: int, out: Path) -> None:
    """Measure commits; exit 1 if a figure is void."""
    plan = Plan(rows, seconds, rate)
    sheet = Sheet(out, "source-commits", {"rows": rows, "seconds": seconds, "rate": rate})
    for name in servers:
        with tempfile.TemporaryDirectory(prefix="thl-bench-") as folder:
            at = Path(folder)
            with (
                SERVERS[name](at / name, settings=DURABLE, die_with_parent=True) as server,
                KafkaBroker(at / "kafka", die_with_parent=True) as kafka,
            ):
                bench = _filled(server, kafka, at, rows)
                for _ in range(repeats):
                    for case in CASES:
                        sheet.add(_measured(bench, name, case, plan))
    sys.exit(0 if sheet.valid else 1)


def _filled(server: SqlServer, kafka: KafkaBroker, folder: Path, rows: int) -> Bench:
    """A service with a table that is loaded, and one that commits alone change."""
    bench = Bench(
        server, kafka, folder, settings={"THL_SOURCE__START": "now", "THL_SOURCE__SNAPSHOT__CONNECTIONS": "2"}
    )
    with connection_to(bench) as connection:
        query(connection, f"CREATE DATABASE {bench.service}")
        for table in ("loaded", "other"):
            query(connection, f"CREATE TABLE {bench.service}.{table} (id INT PRIMARY KEY, v VARCHAR(200))")
            for first in range(0, rows, 10_000):
                values = ", ".join(f"({number}, REPEAT('a', 100))" for number in range(first, first + 10_000))
                query(connection, f"INSERT INTO {bench.service}.{table} VALUES {values}")
    return bench


def _measured(bench: Bench, server: str, case: Case, plan: Plan) -> Row:
    def update(number: int) -> str:
        table = "loaded" if number % 2 else "other"
        return f"UPDATE {bench.service}.{table} SET v = REPEAT('b', 100) WHERE id = {number * 7919 % plan.rows}"

    with bench.start(THL_SOURCE__SNAPSHOT__LOCK=case.lock or "none") as producing:
        producing.online()
        with _running(bench) if case.long else _nothing(), _loading(bench, producing) if case.lock else _nothing():
            took = commits(partial(connection_to, bench), update, plan.seconds, plan.rate)
        text = producing.text
        producing.stop()
    cuts = quantiles(took, n=1000)
    waits = [float(found) for found in re.findall(r"stream_waited_seconds=([\d.]+)", text)]
    figures = {
        "p50 ms": round(cuts[499], 2),
        "p99 ms": round(cuts[989], 2),
        "p99.9 ms": round(cuts[998], 2),
        "longest ms": round(max(took), 1),
        "commits/s": round(len(took) / plan.seconds),
        "rounds": len(waits),
        "stream waited s": max(waits, default=0.0),
    }
    void = case.void(len(waits), locks_always=server == "mysql56")
    return Row(f"{server}, {plan.rate}/s, {CLIENTS} clients, {case.name}", figures, void)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _loading(bench: Bench, producing: Producing) -> Iterator[None]:
    """Load the table again and again."""

    def load(over: threading.Event) -> None:
        ended = producing.text.count("loaded a table")
        while not over.is_set():
            asked(bench, f"{bench.service}.loaded")
            while not over.wait(0.05) and producing.text.count("loaded a table") == ended:
                continue
            ended = producing.text.count("loaded a table")
        asked(bench, "--cancel", f"{bench.service}.loaded")

    # What is asked for is not a figure.
    with redirect_stdout(StringIO()), in_background("loading", load, leave=None):
        yield


@contextmanager
def _running(bench: Bench) -> Iterator[None]:
    """Run a statement that has a table open, as a report does."""
    with connection_to(bench) as other:
        reader: Any = connect(bench.config.source)
        number = query(reader, "SELECT CONNECTION_ID() AS id")[0]["id"]
        sleep = f"SELECT SLEEP({LONG}) FROM {bench.service}.other LIMIT 1"
        thread = threading.Thread(target=_read, args=(reader, sleep))
        thread.start()
        runs = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%' AND time > 1"
        while not query(other, runs):
            threading.Event().wait(0.1)
        try:
            yield
        finally:
            query(other, f"KILL {number}")
            thread.join()


def _read(connection: Any, sql: str) -> None:
    try:
        query(connection, sql)
    except Exception as error:
        if error.args[0] not in (1317, 2013, 1053):  # it was killed
            raise


if __name__ == "__main__":
    main()
