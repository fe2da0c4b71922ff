"""`python -m tests.bench.torn`: counts torn reads of four tables beside one writer and several.

Each transaction of the applied log sets every row of four tables to its own number, and is a divided commit. A reader
sees a torn state if one transaction of its own finds two numbers. Readers begin plainly, or by the applier's snapshot.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final

import click
import psycopg
from psycopg import errors, sql
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.log.compact.net_changes import Ddl, NetChanges
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.position import TargetPosition
from connector.sandbox.postgres import PostgresServer
from connector.targets.postgres import divided_commit
from connector.targets.postgres.target import PostgresTarget
from tests.support.net import layout, net

CLOCK: Final = SystemClock()
TABLES: Final = 4
READERS: Final = 2
WRITERS: Final = 4
ROWS: Final = 100  # of a table
LAYOUTS: Final = [layout(f"torn.t{number}", ["id int", "v int"], ["id"]) for number in range(TABLES)]
# One statement for each table, as a report has them.
_READ: Final = [f"SELECT min(v), max(v) FROM torn.t{number}".encode() for number in range(TABLES)]


@dataclass(frozen=True, slots=True)
class Torn:
    """The reads of one run.

    Args:
        reads: all of them.
        torn: those that saw two transactions.
        ended: attempts to begin by a snapshot that had ended.
        commits: that the applier made meanwhile.
        states: the number of different states that were seen.
    """

    writers: int
    by_snapshot: bool
    reads: int
    torn: int
    ended: int
    commits: int
    states: int

    def __str__(self) -> str:
        """A line of the result."""
        way = "by snapshot" if self.by_snapshot else "plain"
        return (
            f"writers: {self.writers}, {way}: {self.torn} of {self.reads} reads torn; "
            f"{self.commits} commits meanwhile, "
            f"{self.states} states seen, {self.ended} snapshots had ended"
        )


def count(dsn: str, *, writers: int, by_snapshot: bool, reads: int, interval: float = 0.2) -> Torn:
    """Apply transactions with a number of writers, and read meanwhile.

    Args:
        dsn: an empty database.
        writers: `target.writers`.
        by_snapshot: how the readers begin.
        reads: the number of reads.
        interval: `target.snapshot_interval`.
    """
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("DROP SCHEMA IF EXISTS torn, thl CASCADE")
    applied = _Applied(dsn, writers, interval)
    ended = Event()
    thread = Thread(target=applied.run, args=(ended,))
    thread.start()
    try:
        with ProcessPoolExecutor(READERS, multiprocessing.get_context("spawn")) as pool:
            shares = [reads // READERS + (at < reads % READERS) for at in range(READERS)]
            found = list(pool.map(_read, [dsn] * READERS, shares, [by_snapshot] * READERS))
    finally:
        ended.set()
        thread.join()
        applied.target.close()
    if applied.failure is not None:
        raise applied.failure
    torn, states, gone = zip(*found, strict=True)
    seen = len(set().union(*states))
    return Torn(writers, by_snapshot, reads, sum(torn), sum(gone), applied.seqno - 1, seen)


class _Applied:
    """A target whose tables are written as fast as it goes."""

    def __init__(self, dsn: str, writers: int, interval: float) -> None:
        self.target = PostgresTarget(SecretStr(dsn), CLOCK, writers=writers, snapshot_interval=interval)
        self.failure: BaseException | None = None
        self.target.claim("torn")
        self.seqno = 0
        creates = ["CREATE DATABASE torn", *(f"CREATE TABLE t{n} (id INT PRIMARY KEY, v INT)" for n in range(TABLES))]
        self.target.ddl(Ddl(seqno=Seqno(0), statements=[Statement("torn", one, {}) for one in creates], commit_time=0))
        self._commit(())
        self._commit([net(table, inserts=self._rows()) for table in LAYOUTS])

    def run(self, ended: Event) -> None:
        """Apply until the end."""
        try:
            while not ended.is_set():
                self._commit([net(table, updates=self._rows()) for table in LAYOUTS])
        except BaseException as failure:
            self.failure = failure
            raise

    def _rows(self) -> list[tuple[int, int]]:
        return [(number, self.seqno) for number in range(ROWS)]

    def _commit(self, changes: Sequence[NetChanges]) -> None:
        self.target.stage(changes, last=True)
        position = TargetPosition(service="torn", log_id=LogId("torn"), seqno=Seqno(self.seqno), epoch=Epoch(1))
        self.target.commit(position, ())
        self.seqno += 1


def _read(dsn: str, reads: int, by_snapshot: bool) -> tuple[int, set[int], int]:
    """Read in a process of its own: torn reads, the numbers seen, and snapshots that had ended."""
    torn = gone = done = 0
    states: set[int] = set()
    with psycopg.connect(dsn, autocommit=True) as session:
        while done < reads:
            snapshot = None
            if by_snapshot:
                row = session.execute("SELECT snapshot FROM thl.thl_progress WHERE service = 'torn'").fetchone()
                snapshot = row and row[0]
            session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                if snapshot is not None:
                    session.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
                elif by_snapshot and not _consistent(session):
                    continue
                found = [session.execute(one).fetchone() for one in _READ]
            except (errors.InvalidParameterValue, errors.UndefinedObject):
                gone += 1
                continue
            finally:
                session.execute("ROLLBACK")
            numbers = {number for row in found for number in row or ()}
            done += 1
            torn += len(numbers) > 1
            states |= numbers
    return torn, states, gone


def _consistent(session: psycopg.Connection) -> bool:
    query = "SELECT consistent FROM thl.thl_position WHERE service = 'torn'"
    return session.execute(query).fetchone() == (True,)


@click.command()
@click.option("--reads", default=5_000, show_default=True)
def main(reads: int) -> None:
    """Print a line for each number of writers and way to read."""
    divided_commit.DIVIDED_ROWS = 1  # type: ignore[misc]  # small commits have more seams
    with tempfile.TemporaryDirectory(prefix="thl-torn-") as folder:
        Path(folder).chmod(0o755)
        with PostgresServer(Path(folder), die_with_parent=True) as server:
            for writers in (WRITERS, 1):
                for by_snapshot in (False, True):
                    print(count(server.dsn, writers=writers, by_snapshot=by_snapshot, reads=reads), flush=True)


if __name__ == "__main__":
    main()
