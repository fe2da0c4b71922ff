"""A cluster's master is found by its address, and an executor that cannot run this package is refused."""

from __future__ import annotations

import logging
import socket
from typing import Any

import pytest

from connector.clock import SystemClock
from connector.errors import ConfigError, SparkUnavailable
from connector.sandbox.ports import free_port
from connector.spark.executors import LIBRARIES, MODULES, compare, reason
from connector.spark.master import on_loopback, wait_for_master
from connector.spark.probe import describe


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


def described(**changed: Any) -> dict[str, Any]:
    return describe(MODULES, LIBRARIES, None) | changed


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
