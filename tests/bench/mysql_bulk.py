"""`python -m tests.bench.mysql_bulk`: what many rows cost a MySQL target and its client, by the way they are written.

New rows by INSERT of many rows and by LOAD DATA LOCAL; changed rows by INSERT … ON DUPLICATE KEY UPDATE, by deletes and
inserts, and by a join with a temporary table. Keys are hot (the table's end; the same few rows) or cold (anywhere). The
applier's own code writes them, a batch a transaction, each way into a table of its own; the ways take turns. Each case
ends with a comparison of its tables.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

import click

from connector.ddl.syntax.tokens import quoted
from connector.log.compact.net_changes import Images
from connector.log.transaction.layout import TableName
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from connector.targets.mysql.rows.keyed_rows import KeyedRows
from connector.targets.mysql.rows.table_statements import SAVEPOINT, TableStatements
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.table_facts import TableFacts
from connector.targets.mysql.sql.names import table_name
from connector.targets.table import Table
from tests.bench.meter import usage
from tests.bench.targets import CREATE, TABLE, row
from tests.support.net import Row, images

BATCHES: Final = (100, 2000)
ROUNDS: Final = 4  # in each, every way writes a part of the batches
BEFORE: Final = 1000  # rows of a table that gets new ones between them
SEED: Final = 1
TEMPORARY: Final = TableName("bench", "changed")

Batch = Callable[[int], Images]


def insert(statements: TableStatements, rows: Images) -> None:
    """Insert, or load if the session may."""
    KeyedRows(statements).insert(rows)


def upsert(statements: TableStatements, rows: Images) -> None:
    """Replace in place."""
    KeyedRows(statements).replace(rows, must_exist=True)


def delete_and_insert(statements: TableStatements, rows: Images) -> None:
    """Delete by keys, insert again."""
    KeyedRows(statements).delete(rows, "updated", must_exist=True)
    KeyedRows(statements).insert(rows)


def join(statements: TableStatements, rows: Images) -> None:
    """Insert, or load, into a temporary table; update from it."""
    session, layout = statements.session, replace(statements.layout, name=TEMPORARY)
    insert(TableStatements(session, Table(layout), layout, TableFacts(), again=False), rows)
    key, *others = (quoted(name) for name in statements.columns)
    assigned = ", ".join(f"t.{name} = c.{name}" for name in others)
    name, changed = statements.name, table_name(TEMPORARY)
    if session.query(f"UPDATE {changed} c JOIN {name} t ON t.{key} = c.{key} SET {assigned}") != len(rows):
        raise SystemExit("rows to update are missing")
    session.query(f"DELETE FROM {changed}")


@dataclass
class Way:
    """A way to write rows, with what it has cost.

    Args:
        name: for the table of results.
        write: writes one batch.
        files: true: rows may be loaded.
    """

    name: str
    write: Callable[[TableStatements, Images], None]
    files: bool
    server: float = field(default=0.0, init=False)  # CPU seconds
    client: float = field(default=0.0, init=False)
    seconds: float = field(default=0.0, init=False)

    def run(self, server: MySqlServer, table: TableName, batches: Sequence[Images]) -> None:
        """Write batches, and count what it costs."""
        session = open_session(server, files=self.files)
        layout = replace(TABLE, name=table)
        try:
            session.query(CREATE.replace("TABLE items", f"TEMPORARY TABLE {table_name(TEMPORARY)}"))
            used, cpu, begin = usage(server.pid).cpu_seconds, time.process_time(), time.perf_counter()
            for batch in batches:
                session.query("START TRANSACTION")
                session.query(f"SAVEPOINT {SAVEPOINT}")
                self.write(TableStatements(session, Table(layout), layout, TableFacts(), again=False), batch)
                session.query("COMMIT")
            self.seconds += time.perf_counter() - begin
            self.client += time.process_time() - cpu
            self.server += usage(server.pid).cpu_seconds - used
        finally:
            session.close()


def new_rows() -> list[Way]:
    return [Way("INSERT", insert, False), Way("LOAD DATA LOCAL", insert, True)]


def changed_rows() -> list[Way]:
    return [
        Way("INSERT … ON DUPLICATE KEY UPDATE", upsert, False),
        Way("DELETE, INSERT", delete_and_insert, False),
        Way("DELETE, LOAD DATA LOCAL", delete_and_insert, True),
        Way("temporary table, INSERT, join", join, False),
        Way("temporary table, LOAD DATA LOCAL, join", join, True),
    ]


def written(number: int, keys: Sequence[int]) -> Images:
    """Rows of these keys; those of two batches differ."""
    return images(changed(key, number) for key in keys)


def changed(key: int, number: int) -> Row:
    before = row(key)
    return (*before[:2], number, *before[3:])


def cases(rows: int, size: int) -> Iterator[tuple[str, list[Way], Sequence[int], Batch]]:
    """Each case: its name, its ways, the keys that the tables have before, and its batches by number."""
    scattered = random.Random(SEED).sample(range(10 * rows), rows + BEFORE)
    full = range(rows)
    yield "new, hot", new_rows(), (), lambda n: written(n, range(n * size, n * size + size))
    yield (
        "new, cold",
        new_rows(),
        sorted(scattered[rows:]),
        lambda n: written(n, sorted(scattered[n * size : n * size + size])),
    )
    yield "changed, hot", changed_rows(), full, lambda n: written(n, range(size))
    yield "changed, cold", changed_rows(), full, lambda n: written(n, sorted(random.Random(n).sample(full, size)))


def measure(server: MySqlServer, case: str, ways: Sequence[Way], before: Sequence[int], batches: list[Images]) -> None:
    """Write the batches by each way; print what a row costs.

    Raises:
        SystemExit: the tables differ.
    """
    admin = open_session(server, files=True)
    tables = [TableName("bench", f"way{number}") for number in range(len(ways))]
    try:
        for name in tables:
            admin.query(f"DROP TABLE IF EXISTS {table_name(name)}")
            admin.query(CREATE.replace("TABLE items", f"TABLE {table_name(name)}"))
            layout = replace(TABLE, name=name)
            insert(TableStatements(admin, Table(layout), layout, TableFacts(), again=False), written(0, before))
        for number in range(ROUNDS):
            part = batches[number::ROUNDS]
            order = list(zip(ways, tables, strict=True))
            for way, name in order if number % 2 == 0 else reversed(order):
                way.run(server, name, part)
        listed = ", ".join(map(table_name, tables))
        digests = {checksum for _, checksum in admin.rows(f"CHECKSUM TABLE {listed}")}
        counts = {admin.rows(f"SELECT count(*) FROM {table_name(name)}")[0] for name in tables}
    finally:
        admin.close()
    if len(digests) > 1 or len(counts) > 1:
        raise SystemExit(f"{case}: the tables differ: {digests}, {counts}")
    rows = sum(map(len, batches))
    for way in ways:
        first = ways[0]
        cells = (
            f"{way.server / rows * 1e6:.2f}",
            f"{way.client / rows * 1e6:.2f}",
            f"{rows / way.seconds:,.0f}",
            f"{way.server / first.server:.2f}",
            f"{(way.server + way.client) / (first.server + first.client):.2f}",
        )
        print(f"| {case}, {len(batches[0])} a batch | {way.name} | {' | '.join(cells)} |", flush=True)


def open_session(server: MySqlServer, *, files: bool) -> ServerSession:
    url = f"mysql://{server.user}:{quote(server.password)}@{server.host}:{server.port}"
    return ServerSession(url, "bench", files=files)


@click.command()
@click.option("--rows", default=40_000, show_default=True, help="Rows that each way writes in each case.")
@click.option("--batch", "sizes", type=int, multiple=True, help="Rows of a transaction; 100 and 2000 if not given.")
@click.option("--only", default="", help="Only the cases whose names contain this.")
def main(rows: int, sizes: tuple[int, ...], only: str) -> None:
    """Print CPU µs a row of the server and of the client, rows/s, and ratios to the first way of each case."""
    settings = {**MYSQL_FAST, "local_infile": "ON"}
    print(f"{os.cpu_count()} cores")
    print("| case | way | server µs/row | client µs/row | rows/s | server, ratio | both, ratio |")
    print("|---|---|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory(prefix="thl-bulk-") as folder,
        MySqlServer(Path(folder), settings=settings, die_with_parent=True) as server,
    ):
        server.run_sql("CREATE DATABASE bench")
        for size in sizes or BATCHES:
            count = max(ROUNDS, rows // size)
            for case, ways, before, batch in cases(count * size, size):
                if only in case:
                    measure(server, case, ways, before, [batch(number) for number in range(count)])


if __name__ == "__main__":
    main()
