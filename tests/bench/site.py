"""Servers, configuration and processes for one benchmark run, and what is read off them while they run."""

from __future__ import annotations

import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from connector.clock import SystemClock
from connector.demo import load as shop_load
from connector.demo.stage import Worker, configuration
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.ports import free_port
from connector.sandbox.postgres import PostgresServer
from connector.sandbox.settings import MYSQL_FAST
from tests.bench import workload
from tests.bench.meter import Usage, usage

CLOCK = SystemClock()


@dataclass
class Site:
    """What a run has at hand."""

    folder: Path
    mysql: MySqlServer
    kafka: KafkaBroker
    postgres: PostgresServer
    values: dict[str, Any]
    connect: shop_load.Connect

    def worker(self, command: str, **sections: dict[str, Any]) -> tuple[Worker, Gauges]:
        """A process of ours with its own configuration and metrics port; not started."""
        port = free_port()
        values = {**self.values, "metrics": {"port": port}}
        for name, changes in sections.items():
            values[name] = {**values[name], **changes}
        config = self.folder / f"{command}-{port}.yaml"
        config.write_text(yaml.safe_dump(values))
        return Worker(command, config, self.folder / f"{command}-{port}.log"), Gauges(port)


@dataclass(frozen=True)
class Gauges:
    """A worker's own metrics, over HTTP."""

    port: int

    def value(self, name: str) -> float:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return -1.0  # not up yet
        return next((float(line.split()[-1]) for line in lines if line.startswith(f"{name}{{")), -1.0)


@dataclass(frozen=True)
class Run:
    """One measured run.

    Args:
        rows: row changes between the first look and the last.
        seconds: between them.
        usage: of the whole process family, from its start.
    """

    rows: int
    seconds: float
    usage: Usage
    parts: dict[str, Usage]

    def figures(self) -> dict[str, float]:
        return {
            "rows": self.rows,
            "rows/s": round(self.rows / self.seconds),
            "cpu s per 1M rows": round(self.usage.cpu_seconds / self.rows * 1e6, 2),
            "peak MB": round(self.usage.peak / 1e6),
            **{f"{name} {what}": figure for name in self.parts for what, figure in self.parts[name].figures().items()},
        }


def drain(worker: Worker, gauges: Gauges, rows: str, goal: int, parts: dict[str, str]) -> Run:
    """Start `worker` and measure from its first counted row until `goal` rows are counted.

    `parts` names members of the family: label → text in their command line.
    """
    worker.start()
    first_rows, first_time = 0.0, 0.0
    while True:
        worker.check()
        now, counted = CLOCK.monotonic(), gauges.value(rows)
        if counted > 0 and not first_time:
            first_rows, first_time, before = counted, now, usage(worker.pid or 0)
        if counted >= goal:
            break
        CLOCK.sleep(0.05)
    pid = worker.pid or 0
    spent = usage(pid)
    seconds = max(now - first_time, 1e-9)
    run = Run(int(counted - first_rows), seconds, spent - before, {n: usage(pid, name=t) for n, t in parts.items()})
    worker.stop()
    return run


@contextmanager
def site() -> Iterator[Site]:
    """Fresh servers with the benchmark's tables, nothing of ours started."""
    folder = Path(tempfile.mkdtemp(prefix="thl-bench-"))
    mysql = MySqlServer(folder / "mysql", settings=MYSQL_FAST, die_with_parent=True)
    kafka = KafkaBroker(folder / "kafka", die_with_parent=True)
    postgres = PostgresServer(folder / "postgres", die_with_parent=True)
    servers = (mysql, kafka, postgres)
    for server in servers:
        server.start()
    values = configuration(mysql, kafka, folder, postgres.dsn)
    values["service"] = "bench"
    values["source"] |= {"start": "earliest", "filters": {"do": [workload.SCHEMA]}}
    values["target"]["audit"] = False
    connect = shop_load.connector(mysql.host, mysql.port, mysql.user, mysql.password)
    workload.create(connect)
    try:
        yield Site(folder, mysql, kafka, postgres, values, connect)
    finally:
        for server in servers:
            server.stop()
