"""`thl apply` as a process with a log and a SQLite target, and the processes that it starts."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import psutil
import yaml
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.fetching.jars import spark_kafka_jars
from connector.fetching.java import java_home
from tests.support.clock import PATIENCE
from tests.support.fragments import change, column, record, statement
from tests.support.log_writer import LogWriter
from tests.support.servers.environment import Broker

REPOSITORY = Path(__file__).parents[2]
THL = str(Path(sys.executable).parent / "thl")
CREATE = "CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, v LONGTEXT)"
COLUMNS = [column("id"), column("v", "longtext") | {"charset": "utf8mb4"}]


def target_file(folder: Path, service: str, kafka: Broker, **target: object) -> Path:
    """Write the configuration of an applier with a small JVM.

    Args:
        folder: for the file, and for Spark's checkpoints.
        service: the service.
        kafka: the brokers of its log.
        target: the fields of `target`.
    """
    document = {
        "service": service,
        "kafka": {"bootstrap": kafka.bootstrap},
        "apply": {
            "checkpoint_dir": str(folder / "spark"),
            "heap": "512m",
            "spark": {"spark.jars": ",".join(map(str, spark_kafka_jars()))},
        },
        "target": target,
    }
    file = folder / "target.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


class Process:
    """One `thl apply` with all its children, in a read-only folder or another one."""

    def __init__(self, command: Sequence[str], folder: Path, *, works_in: Path = Path("/proc"), **environ: str) -> None:
        self.log = folder / "apply.log"
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(Path(spec.origin).parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(REPOSITORY),
            **environ,
        }
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(
                command, cwd=works_in, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.family = [psutil.Process(self.popen.pid)]

    def all(self) -> list[psutil.Process]:
        """Itself and its children, those met before included."""
        try:
            known = {one.pid for one in self.family}
            self.family += [one for one in self.family[0].children(recursive=True) if one.pid not in known]
        except psutil.NoSuchProcess:
            pass
        return self.family

    def child(self, word: str) -> psutil.Process:
        """A child with a word in its command line."""
        for _ in attempts():
            for one in self.all()[1:]:
                try:
                    if any(word in part for part in one.cmdline()):
                        return one
                except psutil.Error:
                    continue
        raise AssertionError(word)

    def wait(self, seconds: float = 120) -> int:
        return self.popen.wait(seconds)

    def end(self) -> None:
        for one in self.all():
            try:
                one.kill()
            except psutil.NoSuchProcess:
                continue
        self.popen.wait(PATIENCE)


class Scene:
    """A log, a target, a configuration file, and the processes that were started."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.folder = folder
        self.target = folder / "target.db"
        self.config = Config(
            service=f"p{uuid.uuid4().hex[:10]}",
            kafka=Kafka(bootstrap=bootstrap),
            target=Target(url=SecretStr(f"sqlite:///{self.target}")),
        )
        self.file = folder / "thl.yaml"
        self.configure()
        self.log = LogWriter(self.config)
        self.log.online()
        self.log.events([record(0, [statement(CREATE)], kind="ddl", shard="#UNKNOWN")])
        self.processes: list[Process] = []

    def configure(self, on_error: str = "stop", **apply: object) -> None:
        jars = ",".join(map(str, spark_kafka_jars()))
        spark = {"spark.jars": jars, **apply.pop("spark", {})}  # type: ignore[dict-item]
        document = {
            "service": self.config.service,
            "kafka": {"bootstrap": self.config.kafka.bootstrap, "retries": 5},
            "apply": {"checkpoint_dir": str(self.folder / "spark"), "heap": "512m", "spark": spark, **apply},
            "target": {"url": self.config.target.url.get_secret_value(), "audit": True, "on_error": on_error},
        }
        self.file.write_text(yaml.safe_dump(document))

    def start(self, *command: str, works_in: Path = Path("/proc"), **environ: str) -> Process:
        thl = command or (THL, "apply")
        process = Process([*thl, "--config", str(self.file)], self.folder, works_in=works_in, **environ)
        self.processes.append(process)
        return process

    def insert(self, count: int, size: int = 1) -> int:
        """So many events of one row, with text of a size; returns the last seqno."""
        first = self.log.seqno + 1
        rows = [change("insert", [(None, [n, "x" * size])]) | {"columns": COLUMNS} for n in range(first, first + count)]
        self.log.events([record(first + n, [rows[n]], last_barrier=0) for n in range(count)])
        return self.log.seqno

    def applied(self) -> list[int]:
        try:
            with sqlite3.connect(self.target) as db:
                return [row[0] for row in db.execute("SELECT seqno FROM thl_applied ORDER BY rowid")]
        except sqlite3.OperationalError:
            return []

    def ids(self) -> list[int]:
        """The rows of the target's table."""
        with sqlite3.connect(self.target) as db:
            (table,) = db.execute("SELECT target_name FROM thl_tables WHERE table_name = 'orders'").fetchone()
            return [row[0] for row in db.execute(f'SELECT id FROM "{table}" ORDER BY id')]

    def log_tail(self) -> str:
        """The end of what the processes printed."""
        return "".join(process.log.read_text()[-3000:] for process in self.processes[:1])

    def reaches(self, seqno: int) -> None:
        for _ in attempts():
            applied = self.applied()
            if applied and applied[-1] >= seqno:
                assert applied == list(range(seqno + 1))
                return
        raise AssertionError(f"{self.applied()[-3:]} of {seqno}\n" + self.log_tail())


def attempts(seconds: float = 90) -> Iterator[None]:
    clock = SystemClock()
    end = clock.monotonic() + seconds
    while clock.monotonic() < end:
        yield
        clock.sleep(0.1)
