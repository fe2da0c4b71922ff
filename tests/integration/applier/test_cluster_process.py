"""`thl apply` as a process on a Spark cluster: refused, or killed together with parts of the cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.sandbox.ports import free_port
from tests.support.apply_process import Process, Scene, attempts
from tests.support.servers.environment import Broker
from tests.support.servers.spark_cluster import EXECUTOR_MEMORY, SparkCluster


@pytest.fixture
def scene(kafka_broker: Broker, spark_cluster: SparkCluster, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, kafka_broker.bootstrap)
    configure(made, spark_cluster.url)
    yield made
    for process in made.processes:
        process.end()
    spark_cluster.start()  # what a test has killed
    spark_cluster.free()


def configure(scene: Scene, master: str, timeout: float = 30.0, **spark: str) -> None:
    given = {name.replace("_", "."): value for name, value in spark.items()}
    settings = {"spark.executor.memory": EXECUTOR_MEMORY, **given}
    scene.configure(master=master, executor_timeout=timeout, spark=settings)


def refused(process: Process, code: int) -> str:
    """The output of a process that ends with this code, without a traceback."""
    assert process.wait() == code, process.log.read_text()[-3000:]
    text = process.log.read_text()
    assert "Traceback" not in text
    assert "\tat " not in text
    return text


def test_command_without_the_package_on_executors_ends_before_the_claim(
    scene: Scene, spark_cluster: SparkCluster, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    configure(scene, spark_cluster.url, spark_pyspark_python=str(bare / "bin" / "python"))
    text = refused(scene.start(), 2)
    assert "an executor cannot import connector" in text
    assert "spark.pyspark.python" in text
    assert not scene.applied()


def test_command_without_a_master_ends_after_the_timeout(scene: Scene) -> None:
    configure(scene, f"spark://127.0.0.1:{free_port()}", timeout=0.5)
    assert "no Spark master accepts connections" in refused(scene.start(), 11)


def test_command_without_room_for_an_executor_ends_after_the_timeout(scene: Scene, spark_cluster: SparkCluster) -> None:
    configure(scene, spark_cluster.url, timeout=2.0, spark_executor_memory="8g")
    assert "no executor with a free core" in refused(scene.start(), 11)


def test_killed_executor_and_worker_are_survived(scene: Scene, spark_cluster: SparkCluster) -> None:
    scene.start()
    scene.reaches(scene.insert(50))
    killed = spark_cluster.kill_executor()
    scene.reaches(scene.insert(200))
    assert killed.pid not in {one.pid for one in spark_cluster.executors()}
    spark_cluster.workers[0].kill()
    scene.reaches(scene.insert(200))
    spark_cluster.start()
    scene.reaches(scene.insert(50))


def test_killed_driver_resumes_on_the_same_cluster(scene: Scene) -> None:
    process = scene.start()
    scene.reaches(scene.insert(50))
    scene.insert(200)
    process.popen.kill()
    scene.start()
    scene.reaches(scene.insert(50))


def test_killed_master_is_survived_until_it_returns_without_the_application(
    scene: Scene, spark_cluster: SparkCluster
) -> None:
    """A master without recovery does not know running applications, and ends their executors when it is back."""
    configure(scene, spark_cluster.url, timeout=8.0)
    process = scene.start()
    scene.reaches(scene.insert(50))
    spark_cluster.master.kill()
    scene.reaches(scene.insert(200))
    spark_cluster.start()
    for _ in attempts():
        scene.insert(1)
        if process.popen.poll() is not None:
            break
    refused(process, 11)
    configure(scene, spark_cluster.url)
    scene.start()
    scene.reaches(scene.insert(50))
