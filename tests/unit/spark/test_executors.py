"""A cluster's master is found by its address; executors are waited for, checked, and noticed when they are lost."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from collections.abc import Callable
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from connector.clock import Clock, SystemClock
from connector.config.apply import Apply
from connector.config.model import Config
from connector.errors import ConfigError, SparkUnavailable
from connector.sandbox.ports import free_port
from connector.spark.executors import LIBRARIES, MODULES, Executors, compare, reason
from connector.spark.master import on_loopback, wait_for_master
from connector.spark.probe import describe
from tests.support.clock import Slept


@pytest.mark.parametrize(
    ("master", "loopback"),
    [
        ("local[2]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://[::1]:7077", True),
        ("spark://127.0.0.1:7077,10.0.0.2:7077", False),
        ("spark://master:7077", False),
        ("yarn", False),
    ],
)
def test_driver_listens_on_loopback_only_if_the_cluster_does(master: str, loopback: bool) -> None:
    assert on_loopback(master) is loopback


def test_one_of_several_masters_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        wait_for_master(f"spark://127.0.0.1:{free_port()},127.0.0.1:{port}", 30.0, SystemClock())


@pytest.mark.parametrize("master", ["spark://127.0.0.1", "spark://127.0.0.1:99999", "spark://:x"])
def test_address_without_a_master_is_an_error_after_the_timeout(master: str) -> None:
    with pytest.raises(SparkUnavailable, match="no Spark master") as error:
        wait_for_master(master, 0.01, SystemClock())
    assert error.value.where["master"] == master


def test_other_masters_are_not_asked() -> None:
    wait_for_master("yarn", 0.0, SystemClock())


class Cluster:
    """A session on a cluster whose number of free slots follows the clock."""

    def __init__(self, slots: Callable[[float], int], *, dynamic: bool = False) -> None:
        self.clock = Slept()
        self.stopped = False
        self.cancelled: list[str] = []
        profiles = SimpleNamespace(defaultResourceProfile=lambda: None)
        jvm = SimpleNamespace(
            isStopped=lambda: self.stopped,
            maxNumConcurrentTasks=lambda _: slots(self.clock.seconds),
            resourceProfileManager=lambda: profiles,
        )
        context = SimpleNamespace(
            _jsc=SimpleNamespace(sc=lambda: jvm),
            getConf=lambda: {"spark.dynamicAllocation.enabled": str(dynamic).lower()},
            setJobGroup=lambda *_, **__: None,
            cancelJobGroup=self.cancelled.append,
            parallelize=lambda *_: SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=self._collect)),
        )
        self.session: Any = SimpleNamespace(slots=0, spark=SimpleNamespace(sparkContext=context))
        self.released = Event()

    def _collect(self) -> list[dict[str, Any]]:
        self.released.wait()
        return []

    def executors(self, timeout: float, clock: Clock | None = None) -> Executors:
        config = Config(apply=Apply(master="spark://m:7077", executor_timeout=timeout))
        return Executors(self.session, config, clock or self.clock)


def test_executors_that_arrive_one_after_the_other_are_waited_for() -> None:
    cluster = Cluster(lambda now: 0 if now < 3 else 1 if now < 3.5 else 2)
    assert cluster.executors(30.0)._wait(Event()) == 2


def test_wait_for_executors_ends_after_the_timeout_or_with_the_command() -> None:
    cluster = Cluster(lambda _: 0)
    with pytest.raises(SparkUnavailable, match="no executor with a free core has started, for 4 s"):
        cluster.executors(4.0)._wait(Event())
    assert 4 <= cluster.clock.seconds < 5
    stop = Event()
    stop.set()
    assert cluster.executors(4.0)._wait(stop) == 0


def lost_at(cluster: Cluster, timeout: float, seconds: int) -> int | None:
    """The second at which the applier gives up, if it does so in time."""
    checked = cluster.executors(timeout)
    for now in range(seconds):
        try:
            checked.check()
        except SparkUnavailable as error:
            assert "all executors are lost" in str(error)
            return now
        cluster.clock.sleep(1.0)
    return None


def test_loss_of_all_executors_is_an_error_once_it_lasts() -> None:
    assert lost_at(Cluster(lambda now: now < 10 or 13 <= now < 20), 5.0, 60) == 24


def test_executors_that_come_and_go_by_load_are_never_lost() -> None:
    assert lost_at(Cluster(lambda _: 0, dynamic=True), 5.0, 60) is None


def test_application_that_the_cluster_has_ended_is_an_error_at_once() -> None:
    cluster = Cluster(lambda _: 1)
    checked = cluster.executors(5.0)
    cluster.stopped = True
    cluster.clock.sleep(1.0)
    with pytest.raises(SparkUnavailable, match="has ended the application"):
        checked.check()


class Hurried(Slept):
    """A clock that advances whenever it is read."""

    def monotonic(self) -> float:
        self.seconds += 10.0
        return self.seconds


@pytest.mark.parametrize(("timeout", "waited"), [(5.0, "60"), (90.0, "90")])
def test_probe_that_no_executor_finishes_is_cancelled_after_a_minute_at_least(timeout: float, waited: str) -> None:
    cluster = Cluster(lambda _: 1)
    try:
        with pytest.raises(SparkUnavailable, match=f"do not finish a task that imports this package, for {waited} s"):
            cluster.executors(timeout, Hurried())._run(1, Event())
    finally:
        cluster.released.set()
    assert cluster.cancelled == ["thl-probe"]


def described(**changed: Any) -> dict[str, Any]:
    return describe(MODULES, LIBRARIES, None) | changed


LACKING = """
import sys
from connector.spark.executors import LIBRARIES, MODULES
from connector.spark.probe import describe
loaded = [name for name in sys.modules if name.startswith("connector")]
for name in loaded:
    del sys.modules[name]
sys.modules[sys.argv[1]] = None  # cannot be imported
print(*describe(MODULES, LIBRARIES, None)["missing"].values())
"""


@pytest.mark.parametrize(
    "module",
    ["connector.log.compact.scan", "connector.log.compact.compact", "connector.relay.record",
     "connector.spark.source.changes"],
)  # fmt: skip
def test_executor_without_a_compiled_module_that_tasks_use_is_noticed(module: str) -> None:
    found = subprocess.run([sys.executable, "-c", LACKING, module], capture_output=True, text=True, check=True)
    assert module in found.stdout


def test_executor_like_the_driver_is_accepted_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    compare(described(), described(folder="/work/1"))
    assert not caplog.records


def test_executor_with_another_library_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        compare(described(), described(libraries={"pyarrow": "18.0"}))
    assert "other versions of libraries" in caplog.text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"package": "0.0.9"}, "another version of this package"),
        ({"missing": {"pyarrow": "ModuleNotFoundError"}}, "cannot import pyarrow"),
    ],
)
def test_executor_that_cannot_run_the_package_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        compare(described(), described(**changed))
    assert "spark.pyspark.python" in refused.value.hint


def test_missing_module_is_reported_without_an_error() -> None:
    assert "no_such_module" in describe(("no_such_module",), {}, None)["missing"]


MISMATCH = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1972, in main
    check_python_version(infile)
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12
Please check environment variables PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON are correctly set.

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
Caused by: java.io.IOException: later
"""  # noqa: E501


@pytest.mark.parametrize(
    ("text", "explained"),
    [
        (MISMATCH, "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker"),
        (
            ': org.X: failed: java.io.IOException: Cannot run program "/x": error=2, No\n\tat a',
            'Cannot run program "/x"',
        ),
        ("An error\n\tat java\nCaused by: a\nCaused by: java.io.IOException: b", "java.io.IOException: b"),
    ],
)
def test_error_of_a_task_is_explained_in_one_line(text: str, explained: str) -> None:
    assert reason(text).startswith(explained)
    assert "\n" not in reason(text)
