"""`thl apply` on a Spark cluster: executors are processes of their own, and are checked at the start."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
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
from connector.errors import ConfigError, SparkUnavailable
from connector.log.ids import Seqno
from connector.log.transaction.position import TargetPosition
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


class Driver:
    """This process as the driver of an application."""

    def __init__(self, master: str, folder: Path) -> None:
        self._master = master
        self._folder = folder
        self.session = self._started()

    def renew(self) -> None:
        """Begin another application, as a new process does."""
        self.session.stop()
        self.session = self._started()

    def wait(self, config: Config) -> None:
        """Wait for executors, however long they take to start here."""
        patient = config.model_copy(update={"apply": Apply(executor_timeout=120.0)})
        Executors(self.session, patient, SystemClock()).prepare(Event())

    def _started(self) -> SparkRun:
        return session(self._folder, master=self._master, spark={"spark.executor.memory": EXECUTOR_MEMORY})


@pytest.fixture(scope="module")
def driver(spark_cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    end_jvm()  # another module's, whose settings are for its session
    made = Driver(spark_cluster.url, tmp_path_factory.mktemp("spark"))
    yield made
    made.session.stop()
    end_jvm()
    spark_cluster.free()


@pytest.fixture
def spark(driver: Driver) -> SparkRun:
    return driver.session


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of the same version without any package."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    return Config(service="unused", kafka=Kafka(bootstrap=kafka_broker.bootstrap), apply=Apply(executor_timeout=30.0))


@pytest.fixture
def scene(kafka_broker: Broker, driver: Driver, tmp_path: Path) -> Scene:
    made = Scene(tmp_path, kafka_broker.bootstrap)
    made.configure(executor_timeout=5.0)
    driver.wait(load(made.file))
    return made


@contextmanager
def applying(scene: Scene, spark: SparkRun) -> Iterator[Future[TargetPosition | None]]:
    """An applier that runs until the end of the block, or until it ends with an error."""
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(Applier(load(scene.file), spark, SystemClock(), stop).run)
        try:
            yield ended
        except AssertionError:
            if ended.done():
                ended.result()  # the error is why
            raise
        finally:
            stop.set()


def prepare(session: SparkRun, config: Config) -> None:
    Executors(session, config, SystemClock()).prepare(Event())


@pytest.mark.long
def test_target_equals_the_log_in_micro_batches(scene: Scene, spark: SparkRun, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[Mode] = []
    following = LogStream.next

    def watched(stream: LogStream, timeout: float) -> object:
        modes.append(stream.mode)
        return following(stream, timeout)

    monkeypatch.setattr(LogStream, "next", watched)
    last = scene.insert(300)
    position = Applier(load(scene.file), spark, SystemClock(), Event(), until=Seqno(last)).run()
    assert position is not None
    assert position.seqno == last
    assert scene.applied() == list(range(last + 1))
    assert scene.ids() == list(range(1, last + 1))
    assert spark.slots == 0
    assert set(modes) == {Mode.MICRO_BATCH}


@pytest.mark.long
def test_executors_run_this_python_unless_another_is_named(spark: SparkRun, config: Config) -> None:
    (found,) = {one["executable"] for one in Executors(spark, config, SystemClock())._run(2, Event())}
    assert Path(found) == Path(sys.executable)


def test_probe_asks_every_executor(
    spark: SparkRun, spark_cluster: SparkCluster, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "_ROUNDS", 40)  # Spark gives a single task to any executor, by chance
    found = Executors(spark, config, SystemClock())._probe(1, Event())
    work = {Path(one["folder"]).parents[1] for one in found}
    assert work == {worker.work for worker in spark_cluster.workers}


def test_executor_without_the_package_is_refused_before_the_claim(
    scene: Scene, spark: SparkRun, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(ConfigError, match="an executor cannot import connector") as refused:
        Applier(load(scene.file), spark, SystemClock(), Event()).run()
    assert refused.value.where["program"] == str(bare)
    assert "ModuleNotFoundError" in str(refused.value)
    assert "spark.pyspark.python" in refused.value.hint
    assert not scene.target.exists()


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
    found = checked._probe(2, Event())
    monkeypatch.setattr(checked, "_probe", lambda *_: found)
    monkeypatch.setattr(executors, "unreachable", lambda _: "the driver does not reach them, either")
    checked.prepare(Event())  # the applier waits for them later
    monkeypatch.setattr(executors, "unreachable", lambda _: "")
    with pytest.raises(ConfigError, match="an executor cannot reach the brokers") as refused:
        checked.prepare(Event())
    assert refused.value.where["bootstrap"] == nowhere.kafka.bootstrap


def test_killed_executor_and_workers_are_survived(scene: Scene, driver: Driver, spark_cluster: SparkCluster) -> None:
    with applying(scene, driver.session) as ended:
        scene.reaches(scene.insert(50))
        killed = spark_cluster.kill_executor()
        scene.reaches(scene.insert(200))
        assert killed.pid not in {one.pid for one in spark_cluster.executors()}
        spark_cluster.workers[0].kill()
        scene.reaches(scene.insert(200))
        spark_cluster.workers[1].kill()
        assert "all executors are lost" in str(ended.exception(60))
    with pytest.raises(SparkUnavailable, match="no executor with a free core"):
        prepare(driver.session, load(scene.file))
    spark_cluster.start()
    driver.wait(load(scene.file))
    with applying(scene, driver.session):
        scene.reaches(scene.insert(50))


@pytest.mark.long
def test_killed_master_is_survived_until_it_returns_without_the_application(
    scene: Scene, driver: Driver, spark_cluster: SparkCluster
) -> None:
    """A master without recovery does not know running applications, and ends their executors once it is back."""
    with applying(scene, driver.session) as ended:
        scene.reaches(scene.insert(50))
        spark_cluster.master.kill()
        scene.reaches(scene.insert(200))
        spark_cluster.start()
        assert isinstance(ended.exception(90), SparkUnavailable)
    driver.renew()
    driver.wait(load(scene.file))
    with applying(scene, driver.session):
        scene.reaches(scene.insert(50))
