"""`thl apply` as a process: on several kinds of Spark, ended by a signal, killed, refused."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
import yaml
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.fetching.jars import spark_kafka_jars
from connector.fetching.java import java_home
from tests.support.fragments import change, column, record, statement
from tests.support.log_writer import LogWriter
from tests.support.servers.environment import Broker

REPOSITORY = Path(__file__).parents[3]
THL = str(Path(sys.executable).parent / "thl")
CREATE = "CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, v LONGTEXT)"
COLUMNS = [column("id"), column("v", "longtext") | {"charset": "utf8mb4"}]


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
        self.popen.wait(30)


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

    def configure(self, **apply: object) -> None:
        jars = ",".join(map(str, spark_kafka_jars()))
        spark = {"spark.jars": jars, **apply.pop("spark", {})}  # type: ignore[dict-item]
        document = {
            "service": self.config.service,
            "kafka": {"bootstrap": self.config.kafka.bootstrap, "retries": 5},
            "apply": {"checkpoint_dir": str(self.folder / "spark"), "heap": "512m", "spark": spark, **apply},
            "target": {"url": self.config.target.url.get_secret_value(), "audit": True},
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

    def reaches(self, seqno: int) -> None:
        for _ in attempts():
            applied = self.applied()
            if applied and applied[-1] >= seqno:
                assert applied == list(range(seqno + 1))
                return
        raise AssertionError(f"{self.applied()[-3:]} of {seqno}\n" + (self.folder / "apply.log").read_text()[-3000:])


def attempts(seconds: float = 90) -> Iterator[None]:
    clock = SystemClock()
    end = clock.monotonic() + seconds
    while clock.monotonic() < end:
        yield
        clock.sleep(0.1)


@pytest.fixture
def scene(kafka_broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, kafka_broker.bootstrap)
    yield made
    for process in made.processes:
        process.end()


def test_sigterm_ends_the_applier_and_spark(scene: Scene) -> None:
    last = scene.insert(10)
    process = scene.start()
    scene.reaches(last)
    jvm = process.child("SparkSubmit")
    process.popen.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    jvm.wait(10)
    assert f"stopped after event {last}" in process.log.read_text()
    assert list((scene.folder / "spark").iterdir()) == []


def test_apply_finds_java_and_jars_itself_and_spark_prints_nothing(scene: Scene) -> None:
    document = yaml.safe_load(scene.file.read_text())
    del document["apply"]["spark"]
    scene.file.write_text(yaml.safe_dump(document))
    last = scene.insert(3)
    process = scene.start(THL, "apply", "--to-seqno", str(last), JAVA_HOME="/nowhere")
    assert process.wait() == 0
    scene.reaches(last)
    lines = process.log.read_text().splitlines()
    assert [line for line in lines if not re.match(r"\d{4}-\d\d-\d\dT\S+ (INFO|WARNING) ", line)] == [lines[-1]]
    assert lines[-1].startswith(f"stopped after event {last}")


def test_killed_applier_resumes_at_the_targets_position(scene: Scene) -> None:
    for _ in range(2):
        last = scene.insert(100)
        process = scene.start()
        scene.reaches(last)
        scene.insert(100)
        process.end()
    scene.start()
    scene.reaches(scene.log.seqno)


def test_applier_ends_with_its_jvm(scene: Scene) -> None:
    process = scene.start()
    scene.reaches(scene.insert(10))
    process.child("SparkSubmit").kill()
    assert process.wait(30) == 11
    assert "Spark's JVM has ended" in process.log.read_text()
    assert "Traceback" not in process.log.read_text()


def test_jvm_ends_with_the_applier(scene: Scene) -> None:
    process = scene.start()
    scene.reaches(scene.insert(10))
    jvm = process.child("SparkSubmit")
    process.popen.kill()
    jvm.wait(30)


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
def test_applier_killed_at_a_failpoint_applies_each_event_once(scene: Scene, point: str) -> None:
    last = scene.insert(20)
    process = scene.start(THL_CRASH_POINT=f"apply.{point}:1")
    assert process.wait() == -signal.SIGKILL
    process.end()
    scene.start()
    scene.reaches(last)


def test_a_target_of_another_log_is_refused_with_the_reason(scene: Scene) -> None:
    scene.insert(3)
    process = scene.start(THL, "apply", "--to-seqno", "3")
    assert process.wait() == 0
    with sqlite3.connect(scene.target) as db:
        db.execute("UPDATE thl_position SET epoch = 7")
    process = scene.start()
    assert process.wait() == 8
    text = process.log.read_text()
    assert (
        "Log epoch numbers do not match: client source ID=db:3306 seqno=3 server epoch number=1 client epoch number=7"
        in text
    )
    assert "Traceback" not in text


def test_batches_that_do_not_fit_into_spark_are_read_in_smaller_ones(scene: Scene) -> None:
    scene.configure(spark={"spark.driver.maxResultSize": "500k"})
    last = scene.insert(200, size=20_000)
    scene.start()
    scene.reaches(last)


def test_killed_executor_is_survived(scene: Scene) -> None:
    scene.configure(master="local-cluster[2,1,1024]", spark={"spark.executor.memory": "512m"})
    process = scene.start()
    scene.reaches(scene.insert(50))
    process.child("CoarseGrainedExecutorBackend").kill()
    scene.reaches(scene.insert(50))


def test_applier_runs_under_spark_submit(scene: Scene) -> None:
    last = scene.insert(10)
    jars = ",".join(map(str, spark_kafka_jars()))
    submit = (sys.executable, "-m", "pyspark.find_spark_home")
    home = subprocess.run(submit, capture_output=True, text=True, check=True).stdout.strip()
    application = str(REPOSITORY / "spark_apps" / "apply.py")
    command = (f"{home}/bin/spark-submit", "--master", "local[2]", "--jars", jars, application)
    # A JVM that is not ours makes a folder where it works.
    process = scene.start(*command, "--to-seqno", str(last), works_in=scene.folder)
    assert process.wait() == 0
    scene.reaches(last)
