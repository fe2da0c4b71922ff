"""The demo in order: servers, a filled shop, an initial load, a workload with kills and DDL, the comparison."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from connector.clock import Clock
from connector.config.loading import load as load_config
from connector.demo import chaos, workload
from connector.demo.probe import TargetProbe, applied_once, latencies, probe
from connector.demo.stage import Stage, build
from connector.errors import SandboxError
from connector.log.gtid.mysql import GtidSet
from connector.verify import Report, verify


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of the demo.

    Args:
        customers, products, clicks: rows of these tables before the initial load.
        huge: rows of the one huge transaction.
        workers: number of connections that run transactions.
        rate: transactions per second of each worker.
        seconds: duration of the workload.
    """

    customers: int = 4000
    products: int = 300
    clicks: int = 20_000
    huge: int = 200_000
    workers: int = 6
    rate: float = 25
    seconds: float = 35


@dataclass(slots=True)
class DemoResult:
    """The result of the demo."""

    verified: Report
    state: TargetProbe
    transactions: int
    load_seconds: float
    kills: int
    once: bool
    milliseconds: list[float] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """True if source and target are equal and every event was applied exactly once."""
        return self.verified.equal and self.once

    def percentile(self, share: int) -> float:
        """Return a percentile of the latencies in milliseconds; `share` is 1 to 99."""
        return statistics.quantiles(self.milliseconds, n=100)[share - 1] if len(self.milliseconds) > 1 else 0.0


class Scenario:
    """Runs the demo.

    Args:
        folder: folder for servers, logs and target.
        scale: the demo's size.
        clock: the clock that paces the demo.
        report: called with one line for each step.
    """

    def __init__(self, folder: Path, scale: Scale, clock: Clock, report: Callable[[str], None]) -> None:
        self.stage: Stage | None = None
        self.workload: workload.ShopWorkload | None = None
        self._folder = folder
        self._scale = scale
        self._clock = clock
        self._report = report

    def run(self) -> DemoResult:
        """Start the servers, write, disturb, and compare source and target.

        Raises:
            ConnectorError: a server or process did not start or ended by itself, or events did not arrive in time.
        """
        scale = self._scale
        self._report("starting MySQL and Kafka")
        stage = self.stage = build(self._folder)
        connect = workload.connector(stage.mysql.host, stage.mysql.port, stage.mysql.user, stage.mysql.password)
        self._report(f"filling a shop: {scale.customers + scale.products + scale.clicks:,} rows in six tables")
        workload.create(connect)
        workload.fill(connect, seed=1, customers=scale.customers, products=scale.products, clicks=scale.clicks)

        self._report("thl produce and thl apply start; the workload starts with them")
        running = self.workload = workload.ShopWorkload(connect, self._clock, seed=2, rate=scale.rate)
        stage.producer.start()
        stage.applier.start()
        running.start(scale.workers)
        started = self._clock.monotonic()
        self._until(lambda: probe(stage.target).loaded, "the initial load", 180)
        self._report(f"initial load is in at seqno {probe(stage.target).seqno}; the target is consistent")
        began = self._clock.monotonic()
        calm = self._clock.now()

        shaken = 0
        for share, what in self._timeline(connect, running):
            self._wait(began, share)
            shaken = shaken or self._clock.now()
            what()
        self._wait(began, 1.0)
        running.stop()
        seconds = self._clock.monotonic() - started
        self._report(f"workload ends after {running.transactions:,} transactions")

        executed = self._executed(connect)
        self._until(lambda: executed.issubset(GtidSet.parse(probe(stage.target).gtid_set)), "the rest", 180)
        self._report("everything has arrived; comparing every table")
        return DemoResult(
            verified=verify(load_config(stage.config)),
            state=probe(stage.target),
            transactions=running.transactions,
            load_seconds=seconds,
            kills=stage.producer.kills + stage.applier.kills,
            once=applied_once(stage.target),
            milliseconds=latencies(stage.target, calm, shaken),
        )

    def _timeline(
        self, connect: workload.Connect, running: workload.ShopWorkload
    ) -> tuple[tuple[float, Callable[[], None]], ...]:
        """Return the disturbances, each with its time as a fraction of the workload's duration."""
        stage = self.stage
        if stage is None:
            raise SandboxError("the demo's servers are not started")

        def add_column() -> None:
            chaos.add_column(connect)
            self._report("a NOT NULL DEFAULT 7 column is added to orders")

        def huge() -> None:
            chaos.huge(connect, self._scale.huge)
            self._report(f"one transaction of {self._scale.huge:,} rows is committed")

        def rename() -> None:
            chaos.rename_two(connect, running.names)
            self._report("payments and clicks are renamed in one statement")

        def make_and_drop() -> None:
            chaos.make_and_drop(connect)
            self._report("a table is made, filled and dropped")

        def kill_producer() -> None:
            stage.producer.kill()
            self._report("kill -9 thl produce")
            stage.producer.start()

        def kill_applier() -> None:
            stage.applier.kill()
            self._report("kill -9 thl apply")
            stage.applier.start()

        return (
            (0.35, add_column),
            (0.45, huge),
            (0.455, kill_producer),
            (0.6, rename),
            (0.65, kill_applier),
            (0.75, make_and_drop),
        )

    def _wait(self, began: float, share: float) -> None:
        while self._clock.monotonic() - began < self._scale.seconds * share:
            self._check()
            self._clock.sleep(0.02)

    def _until(self, reached: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = self._clock.monotonic() + seconds
        while not reached():
            self._check()
            if self._clock.monotonic() > deadline:
                raise SandboxError(f"{what} did not arrive within {seconds:.0f} s", folder=self._folder)
            self._clock.sleep(0.1)

    def _check(self) -> None:
        if self.stage:
            self.stage.producer.check()
            self.stage.applier.check()

    @staticmethod
    def _executed(connect: workload.Connect) -> GtidSet:
        with connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.gtid_executed")
            return GtidSet.parse(cursor.fetchone()[0].replace("\n", ""))
