"""The JVM's memory as metrics; tests/integration/applier/test_apply_process.py reads them of a real JVM."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY
from py4j.protocol import Py4JNetworkError

from connector import metrics
from connector.config.model import Config, Metrics
from connector.spark import jvm_memory as module
from connector.spark.jvm_memory import jvm_memory
from tests.support.producing import until


class Jvm:
    """A JVM of 2 GiB that has used some, and ends when it is told to."""

    collected = 1500
    gone = False

    def __init__(self, process: int = 0) -> None:
        current = SimpleNamespace(pid=lambda: process)
        self._java = SimpleNamespace(
            lang=SimpleNamespace(
                management=SimpleNamespace(ManagementFactory=self),
                ProcessHandle=SimpleNamespace(current=lambda: current),
            )
        )

    @property
    def jvm(self) -> Any:
        if self.gone:
            raise Py4JNetworkError("the JVM has ended")
        return SimpleNamespace(java=self._java)

    def getMemoryMXBean(self) -> Any:  # noqa: N802
        heap = SimpleNamespace(getUsed=lambda: 500 << 20, getMax=lambda: 2 << 30)
        return SimpleNamespace(
            getHeapMemoryUsage=lambda: heap, getNonHeapMemoryUsage=lambda: SimpleNamespace(getUsed=lambda: 90 << 20)
        )

    def getGarbageCollectorMXBeans(self) -> list[Any]:  # noqa: N802
        return [
            SimpleNamespace(getCollectionTime=lambda: self.collected),
            SimpleNamespace(getCollectionTime=lambda: -1),
        ]


def value(name: str, service: str, **labels: str) -> float:
    found = REGISTRY.get_sample_value(name, {"service": service, **labels})
    return math.nan if found is None else found


def config(service: str, port: int = 1) -> Config:
    return Config(service=service, metrics=Metrics(port=port))


def test_memory_is_read_again_and_again_and_is_unknown_once_the_jvm_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.01)
    jvm = Jvm(os.getpid())
    with jvm_memory(config("jvm"), jvm):
        until(lambda: value("thl_jvm_memory_bytes", "jvm", area="heap") == 500 << 20)
        until(lambda: value("thl_jvm_collection_seconds_total", "jvm") == 1.5)
        assert value("thl_jvm_memory_bytes", "jvm", area="nonheap") == 90 << 20
        assert value("thl_jvm_heap_limit_bytes", "jvm") == 2 << 30
        assert 1 << 20 < value("thl_jvm_memory_bytes", "jvm", area="resident") < 1 << 40
        jvm.collected = 1750
        until(lambda: value("thl_jvm_collection_seconds_total", "jvm") == 1.75)
        jvm.gone = True
        until(lambda: math.isnan(value("thl_jvm_memory_bytes", "jvm", area="heap")))


def test_without_a_metrics_server_the_jvm_is_not_asked() -> None:
    with jvm_memory(config("not-asked", port=0), SimpleNamespace()):  # type: ignore[arg-type]
        pass
    assert math.isnan(value("thl_jvm_memory_bytes", "not-asked", area="heap"))


def test_a_system_that_does_not_tell_leaves_the_resident_memory_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "PROCESSES", tmp_path)
    module._read("no-proc", Jvm().jvm, 0.0)
    assert math.isnan(value("thl_jvm_memory_bytes", "no-proc", area="resident"))
    assert value("thl_jvm_memory_bytes", "no-proc", area="heap") == 500 << 20
    assert metrics.jvm_memory.labels("no-proc", "heap")._value.get() == 500 << 20
