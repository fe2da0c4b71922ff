"""The parts of the demo: servers, a configuration file, and `thl produce` and `thl apply` as processes."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from connector import private_files as private
from connector.errors import SandboxError
from connector.sandbox.fetching.jars import spark_kafka_jars
from connector.sandbox.fetching.java import java_home
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.process import children
from connector.sandbox.program import Program

SERVICE = "shop"


class Worker:
    """`thl produce` or `thl apply` as a process of its own, that can be killed and started again.

    Args:
        command: `produce` or `apply`.
        config: the configuration file.
        log: its output, appended.
        environment: added to ours.
    """

    def __init__(self, command: str, config: Path, log: Path, environment: dict[str, str] | None = None) -> None:
        self.name = f"thl {command}"
        self.config = config
        self.starts = 0
        self.expects_crash = False
        self.kills = 0
        self._program = Program(
            self.name,
            [sys.executable, "-m", "connector", command, "--config", str(config)],
            log=log,
            environment={"JAVA_HOME": str(java_home()), **(environment or {})},
            die_with_parent=True,
        )

    @property
    def pid(self) -> int | None:
        """Its process id."""
        return self._program.pid

    @property
    def running(self) -> bool:
        """It runs."""
        return self._program.running

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs or before its start."""
        return self._program.exit_code

    @property
    def ended_badly(self) -> bool:
        """It was started and has ended, without being killed or expected to."""
        return bool(self.starts) and not self.running and not self.expects_crash

    def start(self) -> None:
        """Start it, for the first time or again."""
        self._program.start()
        self.starts += 1

    def kill(self) -> None:
        """`kill -9`; its JVM too, where it has one."""
        self._program.kill()
        self.kills += 1

    def stop(self) -> None:
        """SIGTERM, and wait for its clean end."""
        self._program.stop(signal.SIGTERM, timeout=60)

    def check(self) -> None:
        """Raise when it ended by itself.

        Raises:
            SandboxError: with the end of its log.
        """
        if not self.running:
            raise SandboxError(f"{self.name} ended by itself\n{self._program.log_tail()}", log=self._program.log)

    def log_tail(self) -> str:
        """The last lines it logged."""
        return self._program.log_tail()

    def family(self) -> list[int]:
        """Its pid and its children's, and theirs."""
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
        """End the workers, then the servers."""
        for worker in (self.producer, self.applier):
            worker.stop()
        self.kafka.stop()
        self.mysql.kill()  # it would clean up for ten seconds what the huge transaction left; nothing is lost by this


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
