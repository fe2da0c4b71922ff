"""The apply core alone, from memory: `python -m tests.bench.applying [--only oltp] [--rows 1000000]`.

What Spark would hand over comes from `recorded`; it is applied to a target that throws everything away (what the core
itself costs), to SQLite, to PostgreSQL, and by hand: the same net rows, encoded beforehand, through COPY and the
merge written out plainly, which is the ceiling that our PostgreSQL target is compared with.
"""

from __future__ import annotations

import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
import psycopg
import pyarrow as pa
from pydantic import SecretStr

from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.clock import SystemClock
from connector.log.compact.metadata_columns import Value
from connector.log.compact.net_changes import AppliedEvent, Ddl, Images, NetChanges
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.message import Message
from connector.log.ids import LogId
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.position import TargetPosition
from connector.sandbox.postgres import PostgresServer
from connector.targets.postgres.copy import HEADER, TRAILER, copy_rows
from connector.targets.postgres.target import PostgresTarget
from connector.targets.postgres.types import bit_count, copy_kind, postgres_type
from connector.targets.sqlite.target import SqliteTarget
from connector.targets.target import TargetDatabase
from connector.targets.target_schema import TargetSchema
from tests.bench.meter import usage
from tests.bench.recorded import Recording, record

KINDS = ("oltp", "bulk", "cold", "load")
TARGETS = ("nothing", "sqlite", "postgresql", "by hand")


class Nothing:
    """A target that discards rows, and keeps the net rows of each commit on request."""

    token = 1
    target_schema = TargetSchema()

    def __init__(self) -> None:
        self.changes = self.net_rows = 0
        self.kept: list[list[NetChanges]] | None = None
        self._staged: list[NetChanges] = []

    def claim(self, service: str, held: int = 0, mark: str = "") -> TargetPosition:
        del held
        return TargetPosition(service=service)

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        del last
        self.changes += sum(net.changes for net in changes)
        self.net_rows += sum(len(net.inserts) + len(net.updates) + len(net.deletes) for net in changes)
        if self.kept is not None:
            self._staged += changes

    def set_metadata(self, values: Sequence[Value], event: Sequence[Value] = ()) -> None:
        del values

    def ddl(self, ddl: Ddl) -> None:
        del ddl

    def begin_snapshot(self) -> None:
        pass

    def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        del position, events
        if self.kept is not None and self._staged:
            self.kept.append(self._staged)
            self._staged = []

    def discard(self) -> None:
        pass

    def close(self) -> None:
        pass


class _NoRanges:
    """Nothing is left by tasks."""

    def batches(self, partition: int, begin: int, end: int, *, large: bool = False) -> Generator[pa.RecordBatch]:
        """Never called."""
        raise AssertionError(partition, begin, end)


class _NoLarge:
    def fetch(self, partition: int, offset: int) -> pa.RecordBatch:
        raise AssertionError("every message is in memory")

    def rest(self) -> None:
        pass


def _core(target: TargetDatabase) -> ApplyCore:
    position = target.claim("bench")
    sequencer = EventSequencer[Message, Messages | Segment](topic="thl.bench", partitions=1, position=position)
    return ApplyCore(
        target,
        position,
        sequencer,
        PartitionBuffers("thl.bench", _NoLarge(), _NoRanges()),
        log_id=LogId("b" * 32),
        gtid_set="",
        topic="thl.bench",
        clock=SystemClock(),
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds, CPU seconds of this process and CPU seconds of the server of a run."""

    seconds: float
    cpu: float
    server_cpu: float

    def figures(self, rows: int) -> dict[str, float]:
        """Costs per row and per million rows."""
        return {
            "rows/s": round(rows / self.seconds),
            "cpu s per 1M rows": round(self.cpu / rows * 1e6, 2),
            "server cpu s per 1M rows": round(self.server_cpu / rows * 1e6, 2),
        }


def _measured(work: Callable[[], None], server: int | None = None, profile: Path | None = None) -> Spent:
    profiler = cProfile.Profile() if profile else None
    before = usage(server).cpu_seconds if server else 0.0
    seconds, cpu = time.perf_counter(), time.process_time()
    if profiler:
        profiler.runcall(work)
    else:
        work()
    seconds, cpu = time.perf_counter() - seconds, time.process_time() - cpu
    if profiler and profile:
        profiler.dump_stats(profile)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    return Spent(seconds, cpu, usage(server).cpu_seconds - before if server else 0.0)


def filled(log: Recording, target: TargetDatabase) -> Callable[[], None]:
    """Apply the preparation; return the work to be measured."""
    core = _core(target)
    for batch in log.before:
        core.accept(batch.to_batches())

    def work() -> None:
        for batch in log.batches:
            core.accept(batch.to_batches())

    return work


class ByHand:
    """COPY and merge written by hand for one table: the least that a commit costs.

    Args:
        dsn: address of the database.
        log: log whose net rows are used, encoded before the measurement.
    """

    def __init__(self, dsn: str, log: Recording) -> None:
        target = Nothing()
        target.kept = []
        core = _core(target)
        for batch in log.before:
            core.accept(batch.to_batches())
        self._filling = len(target.kept)
        for batch in log.batches:
            core.accept(batch.to_batches())
        self._db = psycopg.connect(dsn)
        table = target.kept[0][0].layout
        self._columns = [column.name for column in table.columns]
        types = [postgres_type(column) for column in table.columns]
        typed = ", ".join(f"{name} {kind}" for name, kind in zip(self._columns, types, strict=True))
        self._db.execute(f"CREATE TABLE by_hand ({typed}, PRIMARY KEY (id))".encode())
        self._db.execute("CREATE TABLE by_hand_position (seqno bigint)")
        self._db.execute("INSERT INTO by_hand_position VALUES (0)")
        self._db.execute(f'CREATE TEMP TABLE staged (op "char", {typed})'.encode())
        self._db.commit()
        self._commits = [list(_copied(net)) for kept in target.kept for net in kept]

    def before(self) -> None:
        """Fill the table."""
        for commit in self._commits[: self._filling]:
            self._one(commit)

    def run(self) -> None:
        """Do what is to be measured."""
        for commit in self._commits[self._filling :]:
            self._one(commit)

    def close(self) -> None:
        """Drop the table."""
        self._db.execute("DROP TABLE by_hand, by_hand_position")
        self._db.commit()
        self._db.close()

    def _one(self, chunks: list[bytes]) -> None:
        cursor = self._db.cursor()
        with cursor.copy("COPY staged FROM STDIN (FORMAT binary)") as copy:
            for chunk in chunks:
                copy.write(chunk)
        others = ", ".join(f"{name} = s.{name}" for name in self._columns[1:])
        names = ", ".join(self._columns)
        cursor.execute("DELETE FROM by_hand t USING staged s WHERE s.op = 'd' AND t.id = s.id")
        cursor.execute(f"UPDATE by_hand t SET {others} FROM staged s WHERE s.op = 'u' AND t.id = s.id".encode())
        cursor.execute(f"INSERT INTO by_hand SELECT {names} FROM staged WHERE op = 'i'".encode())
        cursor.execute("UPDATE by_hand_position SET seqno = seqno + 1")
        cursor.execute("TRUNCATE staged")
        self._db.commit()


def _copied(net: NetChanges) -> Iterator[bytes]:
    yield HEADER
    kinds = bytes(copy_kind(column) for column in net.layout.columns)
    bits = bytes(bit_count(column) for column in net.layout.columns)
    every = bytes([1]) * len(kinds)
    parts: list[tuple[Images, bytes, str]] = [
        (net.deletes, bytes(index in net.layout.key for index in range(len(kinds))), "d"),
        (net.updates, every, "u"),
        (net.inserts, every, "i"),
    ]
    for images, wanted, letter in parts:
        done = 0
        while done < len(images):
            chunk, done = copy_rows(images.data, images.ends, done, kinds, bits, wanted, ord(letter), 1 << 18)
            yield chunk
    yield TRAILER


def run(
    kinds: Sequence[str] = KINDS,
    targets: Sequence[str] = TARGETS,
    rows: int = 1_000_000,
    folder: Path | None = None,
    profile: Path | None = None,
) -> dict[str, dict[str, float]]:
    """Every workload on every target, once.

    Args:
        kinds: workloads of `recorded`.
        targets: names in `TARGETS`.
        rows: row changes of each log, about.
        folder: folder of logs kept between runs; None: temporary.
        profile: file for cProfile's statistics, whose top is printed, too.

    Returns:
        "workload to target" → figures; of `nothing`, also how many rows survive the collapse.
    """
    figures: dict[str, dict[str, float]] = {}
    for kind in kinds:
        log = record(kind, rows, folder or Path(tempfile.gettempdir()))
        for name in targets:
            with ExitStack() as stack:
                figures[f"{kind} to {name}"] = _one(log, name, stack, profile)
    return figures


def _one(log: Recording, name: str, stack: ExitStack, profile: Path | None) -> dict[str, float]:
    place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="thl-applying-")))
    if name == "nothing":
        target = Nothing()
        work = filled(log, target)
        target.changes = target.net_rows = 0
        figures = _measured(work, profile=profile).figures(log.rows)
        return figures | {"survive %": round(target.net_rows / target.changes * 100, 1)}
    if name == "sqlite":
        work = filled(log, SqliteTarget(place / "bench.db", SystemClock()))
        return _measured(work, profile=profile).figures(log.rows)
    place.chmod(0o755)
    server = stack.enter_context(PostgresServer(place, die_with_parent=True))
    pid = server.program.pid
    if name == "postgresql":
        postgres = PostgresTarget(SecretStr(server.dsn), SystemClock())
        stack.callback(postgres.close)
        return _measured(filled(log, postgres), pid, profile).figures(log.rows)
    hand = ByHand(server.dsn, log)
    stack.callback(hand.close)
    hand.before()
    return _measured(hand.run, pid, profile).figures(log.rows)


@click.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--only", "kinds", type=click.Choice(KINDS), multiple=True, help="Workloads; all if not given.")
@click.option("--to", "targets", type=click.Choice(TARGETS), multiple=True, help="Targets; all if not given.")
@click.option("--profile", type=click.Path(path_type=Path), help="Where cProfile's statistics go.")
def main(rows: int, kinds: tuple[str, ...], targets: tuple[str, ...], profile: Path | None) -> None:
    """Print a line per workload and target."""
    for name, values in run(kinds or KINDS, targets or TARGETS, rows, profile=profile).items():
        print(f"| {name} | " + " | ".join(f"{key} {value:,.6g}" for key, value in values.items()) + " |")


if __name__ == "__main__":
    main()
