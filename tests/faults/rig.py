"""What a fault run needs: real servers, a producer and an applier as processes, a load, and the proof at the end.

The proof: every table of source and target equal; every seqno in thl_applied exactly once (it is written in the same
target transaction as the data); an append-only table without a key equal; nothing left in staging.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml

from connector.clock import SystemClock
from connector.demo import load as shop_load
from connector.demo.stage import Worker, configuration
from connector.demo.traffic import KINDS
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.postgres import PostgresServer
from connector.settings import load as load_config
from connector.thl.gtid import GtidSet
from connector.verify import Report, verify
from tests.faults import journal
from tests.faults.witness import Witness

CLOCK = SystemClock()


@dataclass
class Rig:
    """Everything that can be killed, and what watches it."""

    folder: Path
    mysql: MySqlServer
    kafka: KafkaBroker
    postgres: PostgresServer | None
    config: Path
    witness: Witness
    connect: shop_load.Connect
    load: shop_load.Load
    kills: dict[str, int] = field(default_factory=dict)
    producer: Worker = field(init=False)
    applier: Worker = field(init=False)

    def __post_init__(self) -> None:
        self.producer = self.worker("produce")
        self.applier = self.worker("apply")

    def worker(self, command: str, environment: dict[str, str] | None = None) -> Worker:
        return Worker(command, self.config, self.folder / f"{command}.log", environment)

    def start(self) -> None:
        self.producer.start()
        self.applier.start()
        self.load.start(4)
        self.until(lambda: self.witness.look().loaded, "the initial load", 180)

    def crash_at(self, command: str, point: str) -> None:
        """Let a worker run into kill -9 at a named point; then start it again without one."""
        self._replace(command, {"THL_CRASH_POINT": point})
        self.until(lambda: not self._worker(command).running, f"the crash at {point}", 90)
        code = self._worker(command).exit_code
        assert code == -signal.SIGKILL, f"{command} at {point} ended with {code}\n{self._worker(command).log_tail()}"
        self._replace(command, {})
        self.count(point)

    def kill(self, name: str, process: Any) -> None:
        """kill -9 a server or worker and start it again at once."""
        process.kill()
        process.start()
        self.count(name)

    def count(self, name: str) -> None:
        self.kills[name] = self.kills.get(name, 0) + 1

    def progress(self, events: int = 20, seconds: float = 120) -> None:
        """Wait until so many further events are applied: nobody is stuck."""
        goal = self.witness.look().seqno + events
        self.until(lambda: self.witness.look().seqno >= goal, f"{events} further events", seconds)

    def finish(self) -> Report:
        """Stop the load, wait for the rest, and prove."""
        self.load.stop()
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.gtid_executed")
            executed = GtidSet.parse(cursor.fetchone()[0].replace("\n", ""))
        self.until(lambda: executed.issubset(GtidSet.parse(self.witness.look().gtid_set)), "the rest", 240)
        report = verify(load_config(self.config))
        assert report.equal, [(t.name, t.differences[:3]) for t in report.tables if not t.equal]
        assert {"shop.journal", "shop.orders"} <= {str(t.name) for t in report.tables}
        self.witness.prove_applied_once()
        self.witness.prove_nothing_staged()
        return report

    def until(self, reached: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = CLOCK.monotonic() + seconds
        while not reached():
            for worker in (self.producer, self.applier):
                if worker.ended_badly:
                    raise AssertionError(f"{worker.name} ended by itself\n{worker.log_tail()}")
            assert CLOCK.monotonic() < deadline, (
                f"{what} did not happen in {seconds:.0f} s; seqno {self.witness.look().seqno}\n"
                f"{self.producer.log_tail()}\n{self.applier.log_tail()}"
            )
            CLOCK.sleep(0.05)

    def close(self) -> None:
        for worker in (self.producer, self.applier):
            worker.kill()
        for server in (self.kafka, self.mysql, self.postgres):
            if server:
                server.kill()

    def _worker(self, command: str) -> Worker:
        return self.producer if command == "produce" else self.applier

    def _replace(self, command: str, environment: dict[str, str]) -> None:
        self._worker(command).kill()
        fresh = self.worker(command, environment)
        fresh.expects_crash = bool(environment)
        if command == "produce":
            self.producer = fresh
        else:
            self.applier = fresh
        fresh.start()


@contextmanager
def rig(
    folder: Path, target: str, *, seed: int = 1, settings: dict[str, dict[str, Any]] | None = None
) -> Iterator[Rig]:
    """Servers up, shop filled, nothing of ours started yet. `target` is `sqlite` or `postgres`."""
    mysql = MySqlServer(folder / "mysql", die_with_parent=True)
    kafka = KafkaBroker(folder / "kafka", die_with_parent=True)
    postgres = PostgresServer(folder / "postgres", die_with_parent=True) if target == "postgres" else None
    for server in (mysql, kafka, postgres):
        if server:
            server.start()
    url = postgres.dsn if postgres else f"sqlite:///{folder / 'target.db'}"
    values = configuration(mysql, kafka, folder, url)
    for section, changes in (settings or {}).items():
        values[section].update(changes)
    config = folder / "thl.yaml"
    config.write_text(yaml.safe_dump(values))
    connect = shop_load.connector(mysql.host, mysql.port, mysql.user, mysql.password)
    shop_load.create(connect)
    journal.create(connect)
    shop_load.fill(connect, seed=seed, customers=1000, products=200, clicks=2000)
    load = shop_load.Load(connect, CLOCK, seed=Random(seed).randrange(10**6), rate=20, kinds=(*KINDS, journal.append))
    made = Rig(folder, mysql, kafka, postgres, config, Witness(url), connect, load)
    try:
        yield made
    finally:
        made.load._stop.set()
        made.close()
