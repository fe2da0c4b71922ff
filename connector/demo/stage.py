"""Starts the demo's servers, writes its configuration file, and runs `thl produce` and `thl apply` as processes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from connector import private_files as private
from connector.errors import SandboxError
from connector.fetching.jars import spark_kafka_jars
from connector.fetching.java import java_home
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.process import children
from connector.sandbox.program import Program

SERVICE = "shop"


class Worker:
    """Runs `thl produce` or `thl apply` as a separate process, which can be killed and started again.

    Args:
        command: `produce` or `apply`.
        config: the configuration file.
        log: the file to which its output is appended.
        environment: variables added to those of this process.
        module: what Python runs, with arguments before the command.
    """

    def __init__(
        self,
        command: str,
        config: Path,
        log: Path,
        environment: dict[str, str] | None = None,
        module: Sequence[str] = ("connector",),
    ) -> None:
        self.name = f"thl {command}"
        self.config = config
        self.starts = 0
        self.expects_crash = False
        self.kills = 0
        self._program = Program(
            self.name,
            [sys.executable, "-m", *module, command, "--config", str(config)],
            log=log,
            environment={"JAVA_HOME": str(java_home()), **(environment or {})},
            die_with_parent=True,
        )

    @property
    def pid(self) -> int | None:
        """The process ID; None before the start."""
        return self._program.pid

    @property
    def running(self) -> bool:
        """True while the process runs."""
        return self._program.running

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs or before its start."""
        return self._program.exit_code

    @property
    def ended_badly(self) -> bool:
        """True if the process ended without `kill` or `stop`."""
        return bool(self.starts) and not self.running and not self.expects_crash

    def start(self) -> None:
        """Start the process, for the first time or again."""
        self._program.start()
        self.starts += 1

    def kill(self) -> None:
        """Send SIGKILL to the process and its JVM, if it has one."""
        self._program.kill()
        self.kills += 1

    def stop(self) -> None:
        """Send SIGTERM, and wait for the process to end."""
        self._program.stop(signal.SIGTERM, timeout=60)

    def check(self) -> None:
        """Raise an error if the process ended by itself.

        Raises:
            SandboxError: the process ended by itself; the message has the end of its log.
        """
        if not self.running:
            raise SandboxError(f"{self.name} ended by itself\n{self._program.log_tail()}", log=self._program.log)

    def log_tail(self) -> str:
        """The last lines of its log."""
        return self._program.log_tail()

    def family(self) -> list[int]:
        """The process IDs of the process and all its descendants."""
        found = [self._program.process.pid]
        for pid in found:
            found.extend(child.pid for child in children(pid))
        return found


@dataclass(frozen=True, slots=True)
class Stage:
    """Servers and processes of the demo."""

    mysql: MySqlServer
    kafka: KafkaBroker
    producer: Worker
    applier: Worker
    config: Path
    target: Path

    def close(self) -> None:
        """Stop the workers, then the servers."""
        for worker in (self.producer, self.applier):
            worker.stop()
        self.kafka.stop()
        self.mysql.kill()  # a clean stop would purge the huge transaction's undo log for ten seconds


def configuration(mysql: MySqlServer, kafka: KafkaBroker, target: str) -> dict[str, Any]:
    """Return the configuration that a user would write for these servers."""
    return {
        "service": SERVICE,
        "source": {
            "host": mysql.host,
            "port": mysql.port,
            "user": mysql.user,
            "password": mysql.password,
            "start": "snapshot",
            "filters": {"do": ["shop"]},
        },
        "kafka": {"bootstrap": kafka.bootstrap, "replication": 1, "min_isr": 1, "allow_unsafe": True},
        "apply": {
            "spark": {"spark.jars": ",".join(map(str, spark_kafka_jars()))},
        },
        "target": {"url": target, "audit": True},
    }


def build(folder: Path) -> Stage:
    """Start the servers and write the configuration; the workers are not started yet."""
    mysql = MySqlServer(folder / "mysql", die_with_parent=True)
    kafka = KafkaBroker(folder / "kafka", die_with_parent=True)
    mysql.start()
    kafka.start()
    target = folder / "target.db"
    config = folder / "thl.yaml"
    with private.open_new(config) as file:
        file.write(yaml.safe_dump(configuration(mysql, kafka, f"sqlite:///{target}"), sort_keys=False).encode())
    return Stage(
        mysql,
        kafka,
        Worker("produce", config, folder / "produce.log"),
        Worker("apply", config, folder / "apply.log"),
        config,
        target,
    )
