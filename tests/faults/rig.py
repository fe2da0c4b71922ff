"""The setup of a fault run: real servers, producer and applier as processes, a workload, and the final comparison.

The proof: every table of source and target equal; every seqno in thl_applied exactly once (it is written in the same
target transaction as the data); an append-only table without a key equal; nothing left in staging; no process of the
connector outlives the one that was killed.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, Final

import psutil
import psycopg
import pymysql
import yaml

from connector.clock import SystemClock
from connector.config.loading import load as load_config
from connector.demo import workload
from connector.demo.stage import SERVICE, Worker, configuration
from connector.demo.traffic import KINDS
from connector.errors import SparkUnavailable
from connector.kafka.log_reader import LogReader
from connector.log.gtid.mysql import GtidSet
from connector.log.ids import NO_SEQNO
from connector.log.transaction.position import PositionRecord
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.postgres import PostgresServer
from connector.verify import Report, verify
from tests.faults import journal
from tests.faults.witness import Witness
from tests.support.clock import PATIENCE
from tests.support.servers.spark_cluster import EXECUTOR_MEMORY, SparkCluster

CLOCK = SystemClock()
WORKERS: Final = 4
RATE: Final = 15.0
ORPHAN_SECONDS: Final = 30.0

# Small, so that a flood is many fragments, Kafka transactions and batches, and several connections load.
SMALL: Final[Mapping[str, Mapping[str, Any]]] = {
    "source": {"batch_bytes": 65536, "snapshot": {"chunk_rows": 100}},
    "publish": {"fragment_bytes": 16384, "shard_bytes": 65536, "commit_bytes": 262144},
    "apply": {"batch_messages": 100, "heap": "512m"},
}

# With several partitions two of three transactions have one shard, the others are barriers.
SHARDS: Final[Mapping[str, Any]] = {
    "shard_by": "table",
    "shards": [{"name": "orders", "pattern": pattern} for pattern in ("shop.order*", "shop.payments")],
}


class Rig:
    """The processes and servers that are killed, and their observers.

    Args:
        folder: everything lies here.
        mysql, kafka, postgres: running.
        seed: seed of the rows and of the workload.
        cluster: running; the applier's Spark. None: Spark's local mode.
        partitions: partitions of the log.
        led: changes the configuration of producer and applier.
    """

    def __init__(
        self,
        folder: Path,
        mysql: MySqlServer,
        kafka: KafkaBroker,
        postgres: PostgresServer | None,
        seed: int,
        *,
        cluster: SparkCluster | None = None,
        partitions: int = 1,
        led: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.folder = folder
        self.mysql = mysql
        self.kafka = kafka
        self.postgres = postgres
        self.cluster = cluster
        self._partitions = partitions
        self.random = Random(seed)
        self.kills: Counter[str] = Counter()
        self._led = led
        self.workload: workload.ShopWorkload | None = None
        self._began = CLOCK.monotonic()
        self._workers: list[Worker] = []
        self._bereaved: list[psutil.Process] = []
        self._services = 0
        workload.create(self.connect)
        journal.create(self.connect)
        workload.fill(self.connect, seed=seed, customers=1000, products=200, clicks=2000)
        self.renew()

    def renew(self) -> None:
        """Switch to a new service with its own target on the same servers; nothing of it is started yet."""
        self._services += 1
        name = f"{SERVICE}{self._services}"
        if self.postgres:
            with psycopg.connect(self.postgres.dsn, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}".encode())
            self.url = self.postgres.dsn.rpartition("/")[0] + f"/{name}"
        else:
            self.url = f"sqlite:///{self.folder / name}.db"
        values = configuration(self.mysql, self.kafka, self.url) | {"service": name}
        for section, changes in SMALL.items():
            values[section] = {**values.get(section, {}), **changes}
        if self._partitions > 1:
            values["kafka"]["partitions"] = self._partitions
            values["publish"] |= SHARDS
        values["apply"]["master"] = f"local[{self._partitions + 1}]"  # the least that allows continuous mode
        if self.cluster:
            values["apply"]["master"] = self.cluster.url
            values["apply"]["spark"]["spark.executor.memory"] = EXECUTOR_MEMORY
        if self._led:
            self._led(values)
        self.config = self.folder / f"{name}.yaml"
        self.config.write_text(yaml.safe_dump(values))
        cluster = {"master": "local-cluster[2,1,1024]"}
        spark = {**values["apply"]["spark"], "spark.executor.memory": "512m"}
        values["apply"] = {**values["apply"], **cluster, "spark": spark}
        self.cluster_config = self.folder / f"{name}-cluster.yaml"
        self.cluster_config.write_text(yaml.safe_dump(values))
        self.witness = Witness(self.url)
        self.producer = self.worker("produce")
        self.applier = self.worker("apply")

    def connect(self) -> pymysql.Connection[Any]:
        """Connect to the source, whichever server that is now."""
        return workload.connector(self.mysql.host, self.mysql.port, self.mysql.user, self.mysql.password)()

    def worker(self, command: str, environ: Mapping[str, str] | None = None, *, cluster: bool = False) -> Worker:
        """A `thl` command that is not started yet."""
        log = self.folder / f"{command}-{len(self._workers)}.log"
        config = self.cluster_config if cluster else self.config
        made = Worker(command, config, log, {**_spark_home(), **(environ or {})})
        made.expects_crash = any(name.startswith("THL_CRASH") for name in environ or ())
        self._workers.append(made)
        return made

    def start(self) -> None:
        """Start producer, applier and workload; return when the initial load is on the target."""
        self.producer.start()
        self.applier.start()
        self.resume()
        self.until(lambda: self.witness.look().loaded, "the initial load")
        self.tell("loaded")

    def tell(self, what: str) -> None:
        """Print a line about the run's progress."""
        print(f"{CLOCK.monotonic() - self._began:7.1f}s  seqno {self.witness.look().seqno:6}  {what}", flush=True)

    def count(self, name: str) -> None:
        """Count a kill."""
        self.kills[name] += 1
        self.tell(f"kill -9: {name}")

    def resume(self) -> None:
        """Start the workload, unless it runs."""
        if self.workload is None:
            seed = self.random.randrange(10**6)
            self.workload = workload.ShopWorkload(
                self.connect, CLOCK, seed=seed, rate=RATE, kinds=(*KINDS, journal.append)
            )
            self.workload.start(WORKERS)

    def pause(self) -> None:
        """Stop the workload."""
        if self.workload is not None:
            self.workload.stop()
            self.workload = None

    def flood(self) -> None:
        """Insert one large transaction."""
        journal.flood(self.connect)

    def prepare(self) -> None:
        """Run some XA transactions."""
        journal.prepare(self.connect)

    def become(self, worker: Worker) -> None:
        """Make this worker the producer or applier from now on; the older one is not checked any more."""
        if worker.name == self.producer.name:
            self.producer = worker
        else:
            self.applier = worker

    def bereave(self, worker: Worker) -> None:
        """Remember the children of a process that will be killed alone."""
        self.mourn(descendants(worker))

    def mourn(self, left: Iterable[psutil.Process]) -> None:
        """Remember processes whose parent was killed: they have to end by themselves."""
        self._bereaved += left

    def progress(self, events: int = 20) -> None:
        """Wait until a number of further events is applied."""
        goal = self.witness.look().seqno + events
        self.until(lambda: self.witness.look().seqno >= goal, f"{events} further events")

    def prove(self) -> Report:
        """Stop the workload, wait for the last rows, and compare source and target."""
        self.pause()
        executed = GtidSet.parse(self.executed())
        self.until(lambda: self._published(executed), "the rest of the log", ends=True)
        last = self._position().last_finished
        self.until(lambda: self.witness.look().seqno >= last, "the rest", ends=True)
        self.tell("everything has arrived")
        report = verify(load_config(self.config))
        assert report.equal, [(table.name, table.differences[:3]) for table in report.tables if not table.equal]
        assert {"shop.journal", "shop.orders"} <= {str(table.name) for table in report.tables}
        self.witness.prove_applied_once()
        self.tell("equal, each event once")
        return report

    def executed(self) -> str:
        """The source's executed GTIDs."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.gtid_executed")
            (executed,) = cursor.fetchone()
        return str(executed).replace("\n", "")

    def _published(self, executed: GtidSet) -> bool:
        """True if the log has these transactions, or the producer has passed those that are no events (XA PREPARE)."""
        return executed.issubset(GtidSet.parse(self._position().gtid_set or ""))

    def _position(self) -> PositionRecord:
        with LogReader(load_config(self.config)) as log:
            position = log.position()
        assert position is not None
        return position

    def finish(self) -> Report:
        """Compare, end both workers cleanly, and check that no staging table and no process is left."""
        report = self.prove()
        for worker in (self.producer, self.applier):
            self.bereave(worker)
            worker.stop()
            assert worker.exit_code == 0, f"{worker.name} ended with {worker.exit_code}\n{worker.log_tail()}"
        if self.cluster:
            self.cluster.free()
        # Of a killed PostgreSQL, its own autovacuum takes away what dead sessions had.
        _wait(lambda: not self.witness.staged(), lambda: f"staging is left: {self.witness.staged()}")
        _wait(lambda: not self.orphans(), lambda: f"orphans: {self.orphans()}")
        return report

    def orphans(self) -> list[str]:
        """Processes that still run after their parent was killed."""
        return [f"{one.pid} {' '.join(one.cmdline())[:80]}" for one in self._bereaved if alive(one)]

    def until(self, reached: Callable[[], bool], what: str, seconds: float = PATIENCE, *, ends: bool = False) -> None:
        """Wait for a condition, while producer and applier keep running; a lost cluster has the applier start again.

        Args:
            reached: the condition.
            what: what is waited for, for the error.
            seconds: to wait.
            ends: the workload has ended: as long as events are applied, the time begins again.
        """
        deadline = CLOCK.monotonic() + seconds
        seqno = NO_SEQNO
        while not reached():
            self._supervise()
            if ends and (now := self.witness.look().seqno) > seqno:
                deadline, seqno = CLOCK.monotonic() + seconds, now
            for worker in (self.producer, self.applier):
                if worker.ended_badly:
                    raise AssertionError(f"{worker.name} ended with {worker.exit_code}\n{worker.log_tail()}")
            assert CLOCK.monotonic() < deadline, (
                f"{what} did not happen in {seconds:.0f} s; seqno {self.witness.look().seqno}\n"
                f"producer:\n{self.producer.log_tail()}\napplier:\n{self.applier.log_tail()}"
            )
            CLOCK.sleep(0.05)

    def _supervise(self) -> None:
        """Start the applier again as docs/cluster.md has it: what it lost of its cluster it cannot replace itself."""
        lost = self.applier.ended_badly and self.applier.exit_code == SparkUnavailable.exit_code
        if self.cluster and lost:
            self.tell(f"starts again: {self.applier.log_tail().splitlines()[-1]}")
            self.applier.start()

    def close(self) -> None:
        """End everything, in any state."""
        for worker in self._workers:
            self._bereaved += descendants(worker)
            worker.kill()
        for one in self._bereaved:
            if alive(one):
                one.kill()
        try:
            self.pause()
        finally:
            for server in (self.kafka, self.mysql, self.postgres):
                if server:
                    server.kill()


@contextmanager
def rig(folder: Path, target: str, *, seed: int = 1, on_cluster: bool = False, partitions: int = 1) -> Iterator[Rig]:
    """Starts the servers and fills the source; `target` is `sqlite` or `postgres`. No worker is started yet."""
    mysql = MySqlServer(folder / "mysql", die_with_parent=True)
    kafka = KafkaBroker(folder / "kafka", die_with_parent=True)
    settings = {"autovacuum_naptime": "1s"}
    postgres = PostgresServer(folder / "postgres", settings=settings, die_with_parent=True)
    cluster = SparkCluster(folder / "spark") if on_cluster else None
    try:
        mysql.start()
        kafka.start()
        if target == "postgres":
            postgres.start()
        if cluster:
            cluster.start()
        used = postgres if target == "postgres" else None
        made = Rig(folder, mysql, kafka, used, seed, cluster=cluster, partitions=partitions)
        try:
            yield made
        finally:
            made.close()
    finally:
        for server in (kafka, mysql, postgres):
            server.kill()
        if cluster:
            cluster.stop()


def signalled(worker: Worker, number: signal.Signals) -> None:
    """Send a signal to a worker alone, without its JVM."""
    assert worker.pid is not None
    os.kill(worker.pid, number)


def stopped(worker: Worker) -> bool:
    """True if SIGSTOP holds the process."""
    assert worker.pid is not None
    return psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED


def descendants(worker: Worker) -> list[psutil.Process]:
    """The children of a process, and theirs."""
    if not worker.running or worker.pid is None:
        return []
    try:
        return psutil.Process(worker.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def alive(process: psutil.Process) -> bool:
    """True if the process runs and is no zombie."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _wait(reached: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    deadline = CLOCK.monotonic() + ORPHAN_SECONDS
    while not reached():
        assert CLOCK.monotonic() < deadline, otherwise()
        CLOCK.sleep(0.1)


def _spark_home() -> dict[str, str]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return {"SPARK_HOME": str(Path(spec.origin).parent), "SPARK_LOCAL_IP": "127.0.0.1"}
