"""Servers for one benchmark, and services on them: a log, a target, and producer and applier between."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import psycopg
import yaml

from connector.clock import SystemClock
from connector.config.loading import load as load_config
from connector.config.model import Config
from connector.demo import workload as shop
from connector.demo.stage import Worker, configuration
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.ports import free_port
from connector.sandbox.postgres import PostgresServer
from connector.sandbox.settings import MYSQL_FAST
from tests.bench import workload
from tests.bench.gauges import Gauges
from tests.bench.meter import Meter

CLOCK = SystemClock()

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Service:
    """A log and a target of its own on the site's servers.

    Args:
        folder: folder of configurations and logs.
        name: name of the service.
        values: content of a user's thl.yaml.
    """

    folder: Path
    name: str
    values: Values

    def worker(self, command: str, **sections: Values) -> tuple[Worker, Gauges]:
        """A process of ours with its own configuration and metrics port; not started."""
        port = free_port()
        config = self.folder / f"{self.name}-{command}-{port}.yaml"
        config.write_text(yaml.safe_dump({**merged(self.values, sections), "metrics": {"port": port}}))
        return Worker(command, config, config.with_suffix(".log")), Gauges(port)

    @property
    def config(self) -> Config:
        """The configuration of both workers."""
        file = self.folder / f"{self.name}.yaml"
        file.write_text(yaml.safe_dump(self.values))
        return load_config(file)


@dataclass(frozen=True, slots=True)
class Site:
    """The servers and settings of a run."""

    folder: Path
    mysql: MySqlServer
    kafka: KafkaBroker
    postgres: PostgresServer
    values: Values
    connect: shop.Connect

    def worker(self, command: str, **sections: Values) -> tuple[Worker, Gauges]:
        """Of the site's one service on PostgreSQL's own database."""
        return Service(self.folder, self.values["service"], self.values).worker(command, **sections)

    def service(self, name: str, target: str = "postgresql", **sections: Values) -> Service:
        """Another log of the same source, and a fresh target."""
        if target == "sqlite":
            url = f"sqlite:///{self.folder / name}.db"
        else:
            with psycopg.connect(self.postgres.dsn, autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{name}"'.encode())
            url = self.postgres.dsn.rpartition("/")[0] + f"/{name}"
        values = merged(merged(self.values, {"target": {"url": url}}), sections)
        # The dump of a service that has just ended may still be registered at the source.
        values = merged(values, {"source": {"server_id": 10_000 + crc32(name.encode()) % 1_000_000}})
        return Service(self.folder, name, {**values, "service": name})

    def retarget(self, service: Service, name: str, target: str) -> Service:
        """The same log with another fresh target."""
        target_of = self.service(name, target).values["target"]
        return Service(self.folder, service.name, merged(service.values, {"target": target_of}))

    def servers(self) -> dict[str, Meter]:
        """The resources used by the servers, which share the machine."""
        pids = {"mysqld": self.mysql.pid, "broker": self.kafka.pid, "postgres": self.postgres.pid}
        return {name: Meter(pid) for name, pid in pids.items()}


def merged(values: Values, sections: Mapping[str, Values]) -> Values:
    """The configuration with some fields of some sections changed."""
    return {**values, **{name: {**values.get(name, {}), **changes} for name, changes in sections.items()}}


@contextmanager
def site(mysql_settings: Mapping[str, str] | None = None) -> Iterator[Site]:
    """Fresh servers with the benchmark's tables, no worker started; all is removed afterwards, also on SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="thl-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL may run as another user
        mysql = MySqlServer(folder / "mysql", settings={**MYSQL_FAST, **(mysql_settings or {})}, die_with_parent=True)
        kafka = KafkaBroker(folder / "kafka", die_with_parent=True)
        postgres = PostgresServer(folder / "postgres", die_with_parent=True)
        servers = (mysql, kafka, postgres)
        try:
            for server in servers:
                server.start()
            values = configuration(mysql, kafka, postgres.dsn)
            values["service"] = "bench"
            values["source"] |= {"start": "earliest", "filters": {"do": [workload.SCHEMA]}}
            values["target"]["audit"] = False
            connect = shop.connector(mysql.host, mysql.port, mysql.user, mysql.password)
            workload.create(connect)
            yield Site(folder, mysql, kafka, postgres, values, connect)
        finally:
            for server in servers:
                server.stop()
