"""`thl apply` as a process on a Spark cluster: refused, killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.sandbox.ports import free_port
from tests.support.apply_process import Process, Scene
from tests.support.servers.environment import Broker
from tests.support.servers.spark_cluster import EXECUTOR_MEMORY, SparkCluster


@pytest.fixture
def scene(kafka_broker: Broker, spark_cluster: SparkCluster, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, kafka_broker.bootstrap)
    made.configure(master=spark_cluster.url, spark={"spark.executor.memory": EXECUTOR_MEMORY})
    yield made
    for process in made.processes:
        process.end()
    spark_cluster.free()


def refused(process: Process, code: int) -> str:
    """The output of a process that ends with this code, without a traceback."""
    assert process.wait() == code, process.log.read_text()[-3000:]
    text = process.log.read_text()
    assert "Traceback" not in text
    assert "\tat " not in text
    return text


@pytest.mark.long
def test_killed_driver_resumes_on_the_same_cluster(scene: Scene) -> None:
    process = scene.start()
    scene.reaches(scene.insert(50))
    scene.insert(200)
    process.popen.kill()
    scene.start()
    scene.reaches(scene.insert(50))


def test_command_without_a_master_ends_after_the_timeout(scene: Scene) -> None:
    scene.configure(master=f"spark://127.0.0.1:{free_port()}", executor_timeout=0.5)
    assert "no Spark master accepts connections" in refused(scene.start(), 11)


@pytest.mark.long
def test_command_without_the_package_on_executors_prints_no_traceback(
    scene: Scene, spark_cluster: SparkCluster, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    settings = {"spark.executor.memory": EXECUTOR_MEMORY, "spark.pyspark.python": str(bare / "bin" / "python")}
    scene.configure(master=spark_cluster.url, spark=settings)
    text = refused(scene.start(), 2)
    assert "an executor cannot import connector" in text
    assert "spark.pyspark.python" in text


@pytest.mark.long
def test_command_without_room_for_an_executor_ends_after_the_timeout(scene: Scene, spark_cluster: SparkCluster) -> None:
    scene.configure(master=spark_cluster.url, executor_timeout=2.0, spark={"spark.executor.memory": "8g"})
    text = refused(scene.start(), 11)
    assert "no executor with a free core" in text
    assert "apply.executor_timeout" in text
