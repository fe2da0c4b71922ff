"""One service with all its processes on real servers, and the Prometheus that watches them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final
from urllib.request import urlopen

import psycopg
import pytest
import yaml

from connector.config.loading import load
from connector.config.model import Config
from connector.fetching.java import java_home
from connector.sandbox.ports import free_port
from connector.sandbox.program import Program
from tests.integration.alerts.rules import write_shortened
from tests.integration.runbooks.test_full_disks import small_disk
from tests.support.clock import PATIENCE
from tests.support.producing import until
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer
from tests.support.servers.prometheus import Prometheus, scraping

TOKEN: Final = "the token of this test"
RELAY_DISK: Final = 5100  # MiB: a little more than the least that is left without an alert


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of a service: source, broker and target."""

    mysql: SqlServer
    kafka: Broker
    postgres: DatabaseServer


class Fleet:
    """A producer, an applier with two writers and a relay, and `thl serve`, each scraped as a job of its own.

    Args:
        folder: for configuration and logs.
        servers: the servers.
        alarms: the Prometheus.
        disk: a small disk for the relay; None: none can be mounted here.
    """

    def __init__(self, folder: Path, servers: Servers, alarms: Prometheus, disk: Path | None) -> None:
        self.folder, self.alarms, self.disk = folder, alarms, disk
        self.mysql, self.kafka, self.postgres = servers.mysql, servers.kafka, servers.postgres
        self.relay = (disk or folder) / "relay"
        self.service = f"a{uuid.uuid4().hex[:8]}"
        self.table = f"{self.service}.t"
        postgres = self.postgres
        self.target = f"postgresql://{postgres.user}:{postgres.password}@{postgres.host}:{postgres.port}/{self.service}"
        self.ports = {"thl-serve": free_port(), "thl-apply": free_port(), "thl-verify": free_port()}
        self.programs: list[Program] = []
        self.file = folder / "shop.yaml"
        self.file.write_text(yaml.safe_dump(self._document()))
        self.sql(
            f"CREATE DATABASE {self.service}",
            f"CREATE TABLE {self.table} (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200))",
            f"INSERT INTO {self.table} (v) VALUES ('first'), ('second')",
        )
        self.on_target(f"CREATE DATABASE {self.service} ENCODING 'UTF8' TEMPLATE template0", database="postgres")
        self.producer = self.program("produce")
        self.applier = self.program("apply", THL_METRICS__PORT=self.ports["thl-apply"])
        self.server = self.program("serve")
        self.verifier = self.program("verify", "--every", "1", THL_METRICS__PORT=self.ports["thl-verify"])

    def _document(self) -> dict[str, Any]:
        source, kafka = self.mysql, self.kafka
        return {
            "service": self.service,
            "source": {
                "host": source.host, "port": source.port, "user": source.user, "password": source.password,
                "server_id": 10_000 + int(self.service[1:5], 16), "filters": {"do": [self.service]},
                "snapshot": {"max_replica_lag": 5},
            },
            "kafka": {"bootstrap": kafka.bootstrap, "replication": 1, "min_isr": 1, "allow_unsafe": True},
            "target": {"url": self.target, "writers": 2, "on_error": "quarantine"},
            "relay": {"dir": str(self.relay), "retention": 1e6},
            "apply": {"heap": "512m", "checkpoint_dir": str(self.folder / "spark")},
            "serve": {"port": self.ports["thl-serve"], "interval": 0.2, "token": TOKEN},
        }  # fmt: skip

    # The processes.

    def program(self, *words: str, **environ: object) -> Program:
        """A `thl` command that is not started yet."""
        log = self.folder / f"{len(self.programs)}-{words[0]}.log"
        made = Program(
            f"thl {words[0]}", self._command(words), log=log, environment=_environment(environ), die_with_parent=True
        )
        self.programs.append(made)
        return made

    def _command(self, words: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "connector", *words, "--config", str(self.file)]

    def thl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a `thl` command to its end."""
        environ = {**os.environ, **_environment({})}
        return subprocess.run(
            self._command(words), env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    def produce(self, **environ: object) -> None:
        """Start a producer with further settings; the one before ends once this one is online, so none is missing."""
        port, before = free_port(), self.producer
        self.producer = self.program("produce", THL_METRICS__PORT=port, **environ)
        self.producer.start()
        until(lambda: " online service=" in self.producer.log.read_text() or not self.producer.running)
        assert self.producer.running, self.producer.log_tail()
        before.kill()
        self.alarms.scrape("thl-produce", port)

    def start(self, program: Program, job: str) -> None:
        """Start a process that was stopped, and wait until it answers."""
        program.start()
        until(lambda: _answers(self.ports[job], "/metrics") or not program.running)
        assert program.running, program.log_tail()
        self.alarms.scrape(job, self.ports[job])

    def apply(self) -> None:
        """Start the applier, and wait until it is seen to follow the log."""
        self.start(self.applier, "thl-apply")
        until(lambda: self.applier_state() == "ONLINE" or not self.applier.running)
        assert self.applier.running, self.applier.log_tail()

    @contextmanager
    def another_server(self, **environ: object) -> Iterator[Program]:
        """A second `thl serve` of the service, scraped too."""
        port = free_port()
        other = self.program("serve", THL_SERVE__PORT=port, **environ)
        other.start()
        until(lambda: _answers(port, "/readyz"))
        self.alarms.scrape("thl-serve", self.ports["thl-serve"], port)
        try:
            yield other
        finally:
            self.alarms.scrape("thl-serve", self.ports["thl-serve"])
            until(
                lambda: not self.alarms.query(f'up{{instance="127.0.0.1:{port}"}}')
            )  # it looks for files after a while
            other.stop()

    def close(self) -> None:
        """End every process, and drop the databases."""
        for program in self.programs:
            program.kill()
        self.sql(f"DROP DATABASE {self.service}")
        self.on_target(f"DROP DATABASE {self.service} WITH (FORCE)", database="postgres")

    # What happens on the servers.

    def sql(self, *statements: str) -> str:
        """Run statements on the source."""
        return self.mysql.run_sql("; ".join(statements))

    def on_target(self, statement: str, database: str = "") -> list[Any]:
        """Run a statement on the target's server."""
        url = self.target.rpartition("/")[0] + f"/{database or self.service}"
        with psycopg.connect(url, autocommit=True) as session:
            found = session.execute(statement.encode())
            return found.fetchall() if found.description else []

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        """A session that holds a table of the target locked."""
        with psycopg.connect(self.target) as session:
            session.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
            yield

    def insert(self) -> None:
        """One more transaction on the source."""
        self.sql(f"INSERT INTO {self.table} (v) VALUES ('more')")

    @contextmanager
    def busy_source(self) -> Iterator[None]:
        """A source on which transactions go on."""
        ended = Event()

        def write() -> None:
            while not ended.wait(0.2):
                self.insert()

        thread = Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @contextmanager
    def frozen_producer(self) -> Iterator[None]:
        """A producer that does nothing, and whose sessions stay."""
        assert self.producer.pid is not None
        os.kill(self.producer.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.producer.pid, signal.SIGCONT)

    # What is seen.

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        return {one["labels"]["alertname"] for one in self.alarms.firing()}

    def fired_since(self, began: float) -> set[str]:
        """The names of those that have fired since a time (seconds since 1970)."""
        since = int((time.time() - began) * 1000)
        found = self.alarms.query(f'count_over_time(ALERTS{{alertstate="firing"}}[{since}ms])')
        return {one["metric"]["alertname"] for one in found}

    def shown(self) -> Any:
        """The service as `thl serve` has it."""
        with urlopen(f"http://127.0.0.1:{self.ports['thl-serve']}/api/services/{self.service}", timeout=10) as answer:
            return json.loads(answer.read())

    def applier_state(self) -> str:
        """The applier's state; "" while it is not known."""
        targets = self.shown().get("targets") or [{"applier": {"state": ""}}]
        return str(targets[0]["applier"]["state"])

    def is_well(self) -> bool:
        """True if both processes have done all there is, and nothing fires or is about to."""
        shown = self.shown()
        return (
            shown["health"] == "ok"
            and (shown["producer"]["state"], self.applier_state()) == ("ONLINE", "ONLINE")
            and not self.alarms.firing()
            and not self.alarms.pending()
        )

    def config(self) -> Config:
        """The configuration, as the processes have it."""
        return load(self.file, {})


def _environment(given: dict[str, object]) -> dict[str, str]:
    return {"JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1"} | {
        name: str(value) for name, value in given.items()
    }


def _answers(port: int, path: str) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def running(folder: Path, servers: Servers) -> Iterator[Fleet]:
    """A fleet at work, with everything applied, and nothing that fires."""
    with ExitStack() as stack:
        alarms = stack.enter_context(scraping(folder / "prometheus", write_shortened(folder / "alerts.yaml")))
        try:
            disk = stack.enter_context(small_disk(folder / "disk", RELAY_DISK))
            disk.chmod(0o700)
        except pytest.skip.Exception:
            disk = None
        made = Fleet(folder, servers, alarms, disk)
        stack.callback(made.close)
        made.produce()
        made.server.start()
        until(lambda: _answers(made.ports["thl-serve"], "/readyz"))
        made.alarms.scrape("thl-serve", made.ports["thl-serve"])
        made.apply()
        until(made.is_well)
        yield made
