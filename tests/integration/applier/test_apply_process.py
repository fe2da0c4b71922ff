"""`thl apply` as a process: on several kinds of Spark, ended by a signal, killed, refused."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from connector.fetching.jars import spark_kafka_jars
from connector.sandbox.ports import free_port
from tests.support.apply_process import COLUMNS, REPOSITORY, THL, Scene
from tests.support.clock import PATIENCE
from tests.support.fragments import change, record
from tests.support.producing import until
from tests.support.servers.environment import Broker


@pytest.fixture
def scene(kafka_broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, kafka_broker.bootstrap)
    yield made
    for process in made.processes:
        process.end()


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


def test_memory_of_the_jvm_is_a_metric_and_sigterm_ends_both(scene: Scene) -> None:
    port = free_port()
    process = scene.start(THL_METRICS__PORT=str(port))
    last = scene.insert(10)
    scene.reaches(last)
    jvm = process.child("SparkSubmit")

    def megabytes(name: str, labels: str = "") -> float:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
            found = [line for line in answer.read().decode().splitlines() if line.startswith(f"{name}{{{labels}")]
        return float(found[0].rpartition(" ")[2]) / (1 << 20) if found else 0.0

    until(lambda: megabytes("thl_jvm_memory_bytes", 'area="heap"') > 1)
    assert megabytes("thl_jvm_memory_bytes", 'area="nonheap"') > 1
    assert 100 < megabytes("thl_jvm_heap_limit_bytes") <= 512
    resident = Path(f"/proc/{jvm.pid}/statm").read_text().split()[1]
    pages = megabytes("thl_jvm_memory_bytes", 'area="resident"')
    assert 0.5 < pages / (int(resident) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)) < 2
    process.popen.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    jvm.wait(PATIENCE)
    assert f"stopped after event {last}" in process.log.read_text()
    assert list((scene.folder / "spark").iterdir()) == []


def test_jvm_that_does_not_start_is_one_error_with_its_cause(scene: Scene) -> None:
    scene.configure(spark={"spark.driver.memory": "1"})
    process = scene.start()
    assert process.wait() == 2
    lines = process.log.read_text().splitlines()
    assert [line for line in lines if not re.match(r"\d{4}-\d\d-\d\dT\S+ INFO ", line)] == lines[-2:]
    assert lines[-2].startswith("thl: Spark does not start: Error occurred during initialization of VM: Too small")
    assert "apply.heap" in lines[-1]
    assert list((scene.folder / "spark").iterdir()) == []


@pytest.mark.long
def test_killed_applier_resumes_at_the_targets_position(scene: Scene) -> None:
    for _ in range(2):
        last = scene.insert(100)
        process = scene.start()
        scene.reaches(last)
        scene.insert(100)
        process.end()
    scene.start()
    scene.reaches(scene.log.seqno)


@pytest.mark.long  # as tests/faults/test_short.py kills it
def test_applier_ends_with_its_jvm(scene: Scene) -> None:
    process = scene.start()
    scene.reaches(scene.insert(10))
    process.child("SparkSubmit").kill()
    assert process.wait(PATIENCE) == 11
    assert "Spark's JVM has ended" in process.log.read_text()
    assert "Traceback" not in process.log.read_text()


@pytest.mark.long  # as tests/faults/test_short.py kills it
def test_jvm_ends_with_the_applier(scene: Scene) -> None:
    process = scene.start()
    scene.reaches(scene.insert(10))
    jvm = process.child("SparkSubmit")
    process.popen.kill()
    jvm.wait(PATIENCE)


@pytest.mark.long
@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
def test_applier_killed_at_a_failpoint_applies_each_event_once(scene: Scene, point: str) -> None:
    last = scene.insert(20)
    process = scene.start(THL_CRASH_POINT=f"apply.{point}:1")
    assert process.wait() == -signal.SIGKILL
    process.end()
    scene.start()
    scene.reaches(last)


@pytest.mark.long
@pytest.mark.parametrize("point", ["apply.after_exclude:1", "target.before_commit:1"])
def test_applier_killed_at_a_quarantine_quarantines_at_the_same_event(scene: Scene, point: str) -> None:
    scene.configure(on_error="quarantine")
    last = scene.insert(20)
    process = scene.start(THL, "apply", "--to-seqno", str(last))
    assert process.wait() == 0
    refused = last + 1
    missing = change("update", [([9_000, "a"], [9_000, "b"])]) | {"columns": COLUMNS}
    scene.log.events([record(refused, [missing], last_barrier=0)])
    scene.insert(20)
    process = scene.start(THL, "apply", "--to-seqno", str(scene.log.seqno), THL_CRASH_POINT=point)
    code = process.wait()
    process.end()
    with sqlite3.connect(scene.target) as db:
        recorded = db.execute("SELECT count(*) FROM thl_excluded").fetchone()[0]
    assert (code, recorded, scene.applied()[-1]) == (-signal.SIGKILL, 0, last)
    process = scene.start(THL, "apply", "--to-seqno", str(scene.log.seqno))
    assert process.wait() == 0
    assert scene.ids() == list(range(1, last + 1))
    assert scene.applied() == list(range(scene.log.seqno + 1))
    with sqlite3.connect(scene.target) as db:
        assert db.execute("SELECT since_seqno, changes FROM thl_excluded").fetchall() == [(refused, 21)]


@pytest.mark.long
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
        "Client handshake failure: Client response validation failed: "
        "Log epoch numbers do not match: client source ID=db:3306 seqno=3 server epoch number=1 client epoch number=7"
        in text
    )
    assert "Traceback" not in text


@pytest.mark.long
def test_batches_that_do_not_fit_into_spark_are_read_in_smaller_ones(scene: Scene) -> None:
    scene.configure(spark={"spark.driver.maxResultSize": "500k"})
    last = scene.insert(200, size=20_000)
    scene.start()
    scene.reaches(last)


@pytest.mark.long
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
