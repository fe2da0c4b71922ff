"""`python -m tests.bench.mysql_threads`: what a new row costs the thread of a MySQL that stores it.

That thread is the limit of one writer's rate, however well its client keeps it busy. LOAD DATA LOCAL, as the applier
writes it, beside the worker of a replica that reads the first way's binary log. Each way writes equal rows into a table
of its own; the ways take turns, and the tables are compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import click

from connector.log.transaction.layout import TableName
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from connector.targets.mysql.rows.keyed_rows import KeyedRows
from connector.targets.mysql.rows.table_statements import SAVEPOINT, TableStatements
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.table_facts import TableFacts
from connector.targets.mysql.sql.names import table_name
from connector.targets.table import Table
from tests.bench.mysql_bulk import open_session, written
from tests.bench.targets import CREATE, TABLE

ROUNDS: Final = 4
SMALL: Final = 1000  # rows of a commit: those of the replica, too
NO_LOG: Final = "SET SESSION sql_log_bin = 0"


@dataclass
class Way:
    """A way to write rows, with its CPU seconds.

    Args:
        name: for the table of results.
        commit: the most rows of a commit.
        settings: statements before.
        engine: of the table.
    """

    name: str
    commit: int
    settings: Sequence[str] = ()
    engine: str = "InnoDB"
    busiest: float = field(default=0.0, init=False)
    others: float = field(default=0.0, init=False)

    def measure(self, server: MySqlServer, work: Callable[[], None]) -> None:
        """Count what the server's threads need for some work."""
        before = _threads(server)
        work()
        after = _threads(server)
        *others, busiest = sorted(used - before.get(thread, 0.0) for thread, used in after.items())
        self.busiest += busiest
        self.others += sum(others)


def _threads(server: MySqlServer) -> dict[str, float]:
    """The CPU seconds of each thread that runs."""
    files = Path(f"/proc/{server.pid}/task").glob("*/schedstat")
    return {file.parent.name: int(file.read_text().split()[0]) / 1e9 for file in files}


def _load(session: ServerSession, table: TableName, keys: range, commit: int) -> None:
    layout = replace(TABLE, name=table)
    for first in range(keys.start, keys.stop, commit):
        session.query("START TRANSACTION")
        session.query(f"SAVEPOINT {SAVEPOINT}")
        rows = written(0, keys[first - keys.start : first - keys.start + commit])
        KeyedRows(TableStatements(session, Table(layout), layout, TableFacts(), again=False)).insert(rows)
        session.query("COMMIT")


def _create(server: MySqlServer, table: TableName, engine: str = "InnoDB") -> None:
    create = CREATE.replace("TABLE items", f"TABLE {table_name(table)}")
    server.run_sql(f"{NO_LOG}; CREATE DATABASE IF NOT EXISTS bench; {create} ENGINE = {engine}")


def _follow(replica: MySqlServer, source: MySqlServer) -> None:
    """Start the replica, and wait until it has all."""
    executed = source.run_sql("SELECT @@gtid_executed").split("\n", 1)[1].replace("\\n", "").strip()
    replica.run_sql(f"START REPLICA; DO WAIT_FOR_EXECUTED_GTID_SET('{executed}', 600)")


def _server(folder: Path, number: int) -> MySqlServer:
    settings = {**MYSQL_FAST, "local_infile": "ON", "server_id": str(number), "replica_parallel_workers": "1"}
    return MySqlServer(folder / str(number), settings=settings, die_with_parent=True)


def _connect(replica: MySqlServer, source: MySqlServer) -> None:
    replica.run_sql(
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{source.host}', SOURCE_PORT = {source.port}, SOURCE_USER = "
        f"'{source.user}', SOURCE_PASSWORD = '{source.password}', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1"
    )


@click.command()
@click.option("--rows", default=80_000, show_default=True, help="Rows that each way writes.")
def main(rows: int) -> None:
    """Print CPU µs a row of the busiest thread, its ratio to the replica's, and CPU µs a row of all other threads."""
    part = rows // ROUNDS
    replicated, replica = (
        Way("LOAD DATA LOCAL, 1,000 a commit", SMALL),
        Way("a replica's worker, 1,000 a commit", SMALL),
    )
    others = [
        Way(f"LOAD DATA LOCAL, {part:,} a commit", part),
        Way("… unique_checks = 0", part, ["SET SESSION unique_checks = 0"]),
        Way("… without binary log", part, [NO_LOG]),
        Way("… without binary log, into BLACKHOLE: reading lines", part, [NO_LOG], "BLACKHOLE"),
    ]
    tables = {way.name: TableName("bench", f"way{number}") for number, way in enumerate((replicated, *others))}
    first = tables[replicated.name]
    with (
        tempfile.TemporaryDirectory(prefix="thl-threads-") as folder,
        _server(Path(folder), 1) as source,
        _server(Path(folder), 2) as follower,
        _server(Path(folder), 3) as alone,
    ):
        for server in (source, follower):
            _create(server, first)
        for way in others:
            _create(alone, tables[way.name], way.engine)
        _connect(follower, source)
        for number in range(ROUNDS):
            keys = range(number * part, number * part + part)
            _write(source, replicated, first, keys)
            replica.measure(follower, lambda: _follow(follower, source))
            follower.run_sql("STOP REPLICA")
            for way in others if number % 2 else others[::-1]:
                _write(alone, way, tables[way.name], keys)
        found = {_checksum(source, first), _checksum(follower, first)}
        found |= {_checksum(alone, tables[way.name]) for way in others if way.engine == "InnoDB"}
    if len(found) > 1:
        raise SystemExit(f"the tables differ: {found}")
    for way in (replica, replicated, *others):
        costs = [seconds / (part * ROUNDS) * 1e6 for seconds in (way.busiest, way.others)]
        print(f"| {way.name} | {costs[0]:.2f} | {way.busiest / replica.busiest:.2f} | {costs[1]:.2f} |")


def _write(server: MySqlServer, way: Way, table: TableName, keys: range) -> None:
    session = open_session(server, files=True)
    try:
        for setting in way.settings:
            session.query(setting)
        way.measure(server, lambda: _load(session, table, keys, way.commit))
    finally:
        session.close()


def _checksum(server: MySqlServer, table: TableName) -> str:
    return server.run_sql(f"CHECKSUM TABLE {table_name(table)}").split()[-1]


if __name__ == "__main__":
    main()
