"""A standalone Spark cluster on loopback: a master, workers of one core, from the jars of the package pyspark.

The applier's process is the driver (client mode). Each worker starts one executor of an application.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.request import urlopen

from connector.clock import SystemClock
from connector.fetching.java import java_home
from connector.fetching.maven import pyspark_jars
from connector.sandbox.ports import free_port
from connector.sandbox.process import Process, children, kill_all
from connector.sandbox.program import Program, wait_until
from connector.sandbox.server import Server
from connector.sandbox.settings import HOST

EXECUTOR: Final = "CoarseGrainedExecutorBackend"
EXECUTOR_MEMORY: Final = "512m"  # little more than the least that Spark accepts
_START_TIMEOUT: Final = 90.0
_JVM: Final = ("-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_CLOCK: Final = SystemClock()


class SparkMaster(Server):
    """The master; it listens on loopback alone, with its web UI.

    Args:
        folder, port: see `Server`.
        settings: Spark's settings of the master (`spark.deploy.…`).
    """

    name = "spark-master"
    start_timeout = _START_TIMEOUT

    def __init__(self, folder: Path, port: int | None = None, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, port)
        self._ui = free_port()
        where = ["--host", HOST, "--port", str(self.port), "--webui-port", str(self._ui)]
        self.program = _program(self.name, "master.Master", where, self.folder, settings=settings)

    @property
    def url(self) -> str:
        """The address for `apply.master`."""
        return f"spark://{HOST}:{self.port}"

    def kill(self) -> None:
        """Send SIGKILL to the master; it forgets applications, as it keeps no state on disk."""
        self.program.kill()

    def state(self) -> dict[str, Any]:
        """Return what the web UI tells: workers and applications; {} if it does not answer."""
        with suppress(OSError, ValueError), urlopen(f"http://{HOST}:{self._ui}/json/", timeout=5) as answer:
            return dict(json.load(answer))
        return {}

    def workers(self) -> int:
        """Return the number of workers that are alive."""
        return sum(worker["state"] == "ALIVE" for worker in self.state().get("workers", []))

    def answers(self) -> bool:
        """Return True if its web UI says that it is alive."""
        return self.state().get("status") == "ALIVE"


class SparkWorker(Server):
    """A worker with one core, hence one executor of an application.

    Args:
        master: the running master.
        name: its name in errors; unique in the cluster.
        folder: folder of its log, and of the executors' work folders.
        memory: memory that it offers.
        environment: environment variables, which its executors inherit.
    """

    start_timeout = _START_TIMEOUT

    def __init__(
        self, master: SparkMaster, name: str, folder: Path, *, memory: str = "600m", environment: Mapping[str, str]
    ) -> None:
        super().__init__(folder, None)
        self.name = name
        self.work = self.folder / "work"
        where = ["--host", HOST, "--port", str(self.port), "--webui-port", "0", "--cores", "1", "--memory", memory]
        # A driver that is killed leaves nothing behind: the worker removes its files with the application.
        local = {"spark.local.dir": str(self.folder / "local"), "spark.worker.ui.retainedExecutors": "10"}
        arguments = [*where, "--work-dir", str(self.work), master.url]
        self.program = _program(name, "worker.Worker", arguments, self.folder, settings=local, environment=environment)

    def answers(self) -> bool:
        """Return True at once: `SparkCluster.start` waits until the master knows all workers."""
        return True

    def stop(self) -> None:
        """Shut the worker and its executors down."""
        started = self.executors()
        self.program.stop()
        kill_all(started)

    def kill(self) -> None:
        """Send SIGKILL to the worker and its executors, as when its machine fails."""
        self.program.kill()

    def executors(self) -> list[Process]:
        """Return the running executors."""
        if not self.program.running or self.pid is None:
            return []
        return [one for one in children(self.pid) if EXECUTOR in _command_line(one.pid)]


class SparkCluster:
    """A master and workers; ends with this process.

    Args:
        folder: folder for logs and work folders.
        workers: number of workers.
        environment: environment variables of workers and executors.
    """

    def __init__(self, folder: Path, workers: int = 2, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.master = SparkMaster(folder / "master")
        self.workers = [
            SparkWorker(self.master, f"spark-worker-{n}", folder / f"worker-{n}", environment=environment or {})
            for n in range(workers)
        ]

    @property
    def url(self) -> str:
        """The address for `apply.master`."""
        return self.master.url

    def start(self) -> None:
        """Start what does not run, and wait until the master has all workers."""
        self.master.start()
        for worker in self.workers:
            worker.start()
        for worker in self.workers:
            wait_until(worker.program, lambda: self.master.workers() >= len(self.workers), timeout=_START_TIMEOUT)

    def stop(self) -> None:
        """End everything."""
        for worker in self.workers:
            worker.stop()
        self.master.stop()

    def executors(self) -> list[Process]:
        """Return the running executors of all workers."""
        return [one for worker in self.workers for one in worker.executors()]

    def kill_executor(self, number: int = 0) -> Process:
        """Send SIGKILL to one of the running executors, and wait for its end."""
        victim = self.executors()[number]
        victim.signal(signal.SIGKILL)
        kill_all([victim])
        return victim

    def free(self, timeout: float = 60.0) -> None:
        """Wait until no application has executors any more."""
        end = _CLOCK.monotonic() + timeout
        while self.executors() or self.master.state().get("activeapps"):
            assert _CLOCK.monotonic() < end, f"{self.master.state().get('activeapps')}: see {self.folder}"
            _CLOCK.sleep(0.1)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _program(
    name: str,
    main: str,
    arguments: Sequence[str],
    folder: Path,
    *,
    settings: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Program:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    options = [f"-D{key}={value}" for key, value in (settings or {}).items()]
    java = [str(java_home() / "bin" / "java"), *_JVM, *options, "-cp", f"{pyspark_jars()}/*"]
    return Program(
        name,
        [*java, f"org.apache.spark.deploy.{main}", *arguments],
        log=folder / f"{name}.log",
        environment={
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(Path(spec.origin).parent),
            "SPARK_LOCAL_IP": HOST,  # of the web UIs, too
            "SPARK_SCALA_VERSION": "2.13",  # as bin/load-spark-env.sh; without it no executor starts
            **(environment or {}),
        },
        die_with_parent=True,
    )


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
