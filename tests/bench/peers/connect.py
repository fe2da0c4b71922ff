"""Kafka Connect: one distributed worker, with the JVM options of its own start script, and its REST interface."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from connector.errors import SandboxError
from connector.fetching.java import java_home
from connector.sandbox.ports import free_port
from connector.sandbox.program import Program, wait_until
from tests.bench.peers.artifacts import connect_jars
from tests.bench.peers.peer import Unavailable
from tests.bench.site import CLOCK, Site

_HEAP = ["-Xms256M", "-Xmx2G"]
_COLLECTOR = ["-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
_COLLECTOR += ["-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"]
_LOGGING = """status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %-5p %m (%c{1})%n%throwable
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
"""
_START = 120.0
_CALL = 90.0
_PATIENCE = 30.0

# A source's partition and its offset, as the connector writes them.
Place = tuple[Mapping[str, str], Mapping[str, str | int]]


class Connect:
    """A worker with its own cluster, as a context.

    Args:
        place: site whose Kafka it uses.
        name: name of the cluster, also in its topics.
        settings: over the worker's own, e.g. `exactly.once.source.support`.
    """

    def __init__(self, place: Site, name: str, settings: Mapping[str, str] | None = None) -> None:
        jars = connect_jars()
        self.name = name
        self._bootstrap = place.kafka.bootstrap
        self._port = free_port()
        self._folder = place.folder / f"connect-{name}"
        self._plugins = jars.plugins
        self._settings = {**self._own(), **(settings or {})}
        properties, logging = self._folder / "worker.properties", self._folder / "log4j2.properties"
        classpath = ":".join(map(str, jars.runtime))
        self.program = Program(
            f"Connect {name}",
            [
                str(java_home() / "bin" / "java"),
                *_HEAP,
                *_COLLECTOR,
                f"-Dlog4j2.configurationFile={logging}",
                "-cp",
                classpath,
                "org.apache.kafka.connect.cli.ConnectDistributed",
                str(properties),
            ],
            log=self._folder / "connect.log",
            die_with_parent=True,
        )

    def _own(self) -> dict[str, str]:
        topics = {
            f"{what}.storage.{setting}": value
            for what in ("config", "offset", "status")
            for setting, value in (("topic", f"connect.{self.name}.{what}"), ("replication.factor", "1"))
        }
        return {
            "bootstrap.servers": self._bootstrap,
            "group.id": f"connect-{self.name}",
            "listeners": f"http://127.0.0.1:{self._port}",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "plugin.discovery": "service_load",
            "plugin.path": str(self._folder / "plugins"),
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            **topics,
        }

    @property
    def pid(self) -> int | None:
        """The worker's process id."""
        return self.program.pid

    def __enter__(self) -> Self:
        for name, jars in self._plugins.items():
            folder = self._folder / "plugins" / name
            folder.mkdir(parents=True)
            for jar in jars:
                (folder / jar.name).symlink_to(jar)
        (self._folder / "log4j2.properties").write_text(_LOGGING)
        lines = "".join(f"{name}={value}\n" for name, value in self._settings.items())
        (self._folder / "worker.properties").write_text(lines)
        self.program.start()
        try:
            wait_until(self.program, self._answers, timeout=_START)
        except SandboxError as error:
            raise Unavailable(error.message) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.program.kill()  # all that counts is read by now, and its farewell takes seven seconds

    def create(self, name: str, config: Mapping[str, str], begin: Place | None = None) -> None:
        """Start a connector, and wait until its task runs.

        Args:
            name: name of the connector, also in a sink's consumer group.
            config: configuration of the connector.
            begin: offset at which a source begins, as if it had stopped there.

        Raises:
            Unavailable: Connect refuses it, or its task fails.
        """
        began = CLOCK.monotonic()
        state = "STOPPED" if begin else "RUNNING"
        self._insist("POST", "/connectors", {"name": name, "config": dict(config), "initial_state": state})
        if begin:
            offsets = [{"partition": dict(begin[0]), "offset": dict(begin[1])}]
            self._insist("PATCH", f"/connectors/{name}/offsets", {"offsets": offsets})
            self._insist("PUT", f"/connectors/{name}/resume")
        while not self._runs(name):
            if CLOCK.monotonic() - began > _START:
                raise Unavailable(f"{name} does not start\n{self.program.log_tail()}")
            CLOCK.sleep(0.1)

    def check(self, name: str) -> None:
        """Raise if the connector does not run.

        Raises:
            Unavailable: with the task's first line of error.
        """
        if not self.program.running:
            raise Unavailable(f"{self.program.name} ended\n{self.program.log_tail()}")
        self._runs(name)

    def _insist(self, method: str, path: str, body: object = None) -> None:
        """Repeat a request while the cluster rebalances: it answers 409, or 400 before a connector is stopped."""
        began = CLOCK.monotonic()
        while True:
            try:
                self._ask(method, path, body)
            except urllib.error.HTTPError as error:
                said = error.read().decode()
                busy = error.code == 409 or "STOPPED state" in said or "not yet" in said or error.code == 404
                if not busy or CLOCK.monotonic() - began > _PATIENCE:
                    raise Unavailable(f"{method} {path} was refused: {said[:500]}") from error
                CLOCK.sleep(0.2)
            else:
                return

    def _runs(self, name: str) -> bool:
        status = self._ask("GET", f"/connectors/{name}/status")
        parts = [status.get("connector", {}), *status.get("tasks", [])]
        for part in parts:
            if part.get("state") == "FAILED":
                trace = part.get("trace", "").splitlines()
                causes = [line for line in trace if line.startswith("Caused by")]
                raise Unavailable(f"{name} failed: {' / '.join([*trace[:1], *causes[-1:]])}")
        return len(parts) > 1 and all(part.get("state") == "RUNNING" for part in parts)

    def _answers(self) -> bool:
        try:
            return bool(self._ask("GET", "/connectors") == [])
        except OSError:
            return False

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=_CALL) as answer:  # noqa: S310 - loopback, by HTTP
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            if error.code == 404 and method == "GET":
                return {}  # not known yet
            raise
