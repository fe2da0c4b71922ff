"""`thl apply` on a Spark cluster: executors are processes of their own, and are checked at the start."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

import connector
from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Apply
from connector.config.kafka import Kafka
from connector.config.loading import load
from connector.config.model import Config
from connector.errors import ConfigError
from connector.log.ids import Seqno
from connector.sandbox.ports import free_port
from connector.spark import executors
from connector.spark.executors import Executors
from connector.spark.session import SparkRun
from connector.spark.stream.stream import LogStream, Mode
from tests.support.apply_process import Scene
from tests.support.servers.environment import Broker
from tests.support.servers.spark_cluster import EXECUTOR_MEMORY, SparkCluster
from tests.support.spark import end_jvm, session

PACKAGE = Path(connector.__file__).parent


@pytest.fixture(scope="module")
def spark(spark_cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
    end_jvm()  # another module's, whose settings are for its session
    with session(
        tmp_path_factory.mktemp("spark"), master=spark_cluster.url, spark={"spark.executor.memory": EXECUTOR_MEMORY}
    ) as started:
        yield started
    end_jvm()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of the same version without any package."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    return Config(service="unused", kafka=Kafka(bootstrap=kafka_broker.bootstrap), apply=Apply(executor_timeout=30.0))


def prepare(session: SparkRun, config: Config) -> None:
    Executors(session, config, SystemClock()).prepare(Event())


def test_target_equals_the_log_in_micro_batches(
    kafka_broker: Broker, tmp_path: Path, spark: SparkRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[Mode] = []
    following = LogStream.next

    def watched(stream: LogStream, timeout: float) -> object:
        modes.append(stream.mode)
        return following(stream, timeout)

    monkeypatch.setattr(LogStream, "next", watched)
    scene = Scene(tmp_path, kafka_broker.bootstrap)
    last = scene.insert(300)
    position = Applier(load(scene.file), spark, SystemClock(), Event(), until=Seqno(last)).run()
    assert position is not None
    assert position.seqno == last
    assert scene.applied() == list(range(last + 1))
    assert scene.ids() == list(range(1, last + 1))
    assert spark.slots == 0
    assert set(modes) == {Mode.MICRO_BATCH}


def test_executors_run_this_python_unless_another_is_named(spark: SparkRun, config: Config) -> None:
    (found,) = {one["executable"] for one in Executors(spark, config, SystemClock())._run(2)}
    assert Path(found) == Path(sys.executable)


def test_probe_asks_every_executor(spark: SparkRun, spark_cluster: SparkCluster, config: Config) -> None:
    found = Executors(spark, config, SystemClock())._probe(1)
    work = {Path(one["folder"]).parents[1] for one in found}
    assert work == {worker.work for worker in spark_cluster.workers}


def test_executor_without_the_package_is_refused(
    spark: SparkRun, config: Config, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(ConfigError, match="an executor cannot import connector") as refused:
        prepare(spark, config)
    assert refused.value.where["program"] == str(bare)
    assert "ModuleNotFoundError" in str(refused.value)
    assert "spark.pyspark.python" in refused.value.hint


def test_executor_with_another_package_is_refused(
    spark: SparkRun, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def needless(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name == "__pycache__" or name.endswith((".c", ".pyx"))}

    shutil.copytree(PACKAGE, tmp_path / "connector", ignore=needless, copy_function=shutil.copyfile)
    with (tmp_path / "connector" / "clock.py").open("a") as changed:
        changed.write("# of another version\n")
    monkeypatch.setitem(spark.spark.sparkContext.environment, "PYTHONPATH", str(tmp_path))
    with pytest.raises(ConfigError, match="another version of this package") as refused:
        prepare(spark, config)
    assert refused.value.where["expected"] != refused.value.where["found"]


def test_python_that_does_not_start_is_refused(
    spark: SparkRun, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.spark.sparkContext, "pythonExec", "/nowhere/python")
    with pytest.raises(ConfigError, match="executors cannot start their Python") as refused:
        prepare(spark, config)
    assert str(refused.value.where["cause"]).startswith('Cannot run program "/nowhere/python"')


def test_brokers_that_only_the_driver_reaches_are_refused(
    spark: SparkRun, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = config.model_copy(update={"kafka": Kafka(bootstrap=f"127.0.0.1:{free_port()}")})
    checked = Executors(spark, nowhere, SystemClock())
    found = checked._probe(1)
    monkeypatch.setattr(checked, "_probe", lambda _: found)
    monkeypatch.setattr(executors, "unreachable", lambda _: "the driver does not reach them, either")
    checked.prepare(Event())  # the applier waits for them later
    monkeypatch.setattr(executors, "unreachable", lambda _: "")
    with pytest.raises(ConfigError, match="an executor cannot reach the brokers") as refused:
        checked.prepare(Event())
    assert refused.value.where["bootstrap"] == nowhere.kafka.bootstrap
