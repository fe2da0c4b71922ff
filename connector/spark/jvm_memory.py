"""Exports the memory of the JVM of Spark's driver as metrics."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final, Protocol

from connector import metrics
from connector.background import in_background
from connector.config.model import Config
from connector.errors import SparkGone
from connector.spark.session import answering

LOG: Final = logging.getLogger(__name__)
EVERY: Final = 10.0  # seconds; a reading is a dozen calls of a tenth of a millisecond
PROCESSES: Final = Path("/proc")


class HasJvm(Protocol):
    """The part of `connector.spark.session.SparkRun` that is needed."""

    @property
    def jvm(self) -> Any:
        """Py4j's view of the JVM."""


@contextmanager
def jvm_memory(config: Config, session: HasJvm) -> Iterator[None]:
    """Update the metrics in a thread while in the context; do nothing without a metrics server.

    Args:
        config: names the service.
        session: runs in the JVM.
    """
    if not config.metrics.port:
        yield
        return
    with in_background("jvm-memory", partial(_watch, config.service, session)):
        yield


def _watch(service: str, session: HasJvm, ended: Event) -> None:
    """Update the metrics until `ended` is set or the JVM has ended, which the applier itself reports."""
    collected = 0.0
    try:
        while not ended.is_set():
            with answering():
                collected = _read(service, session.jvm, collected)
            ended.wait(EVERY)
    except SparkGone as error:
        LOG.debug("the JVM's memory cannot be read", extra={"why": error})
    finally:
        for area in ("heap", "nonheap", "resident"):
            metrics.jvm_memory.labels(service, area).set(math.nan)
        metrics.jvm_heap_limit.labels(service).set(math.nan)


def _read(service: str, jvm: Any, collected: float) -> float:
    """Set the metrics.

    Args:
        collected: the seconds of garbage collections that are counted already.

    Returns:
        The seconds that are counted now.
    """
    factory = jvm.java.lang.management.ManagementFactory
    memory = factory.getMemoryMXBean()
    heap = memory.getHeapMemoryUsage()
    used = {
        "heap": heap.getUsed(),
        "nonheap": memory.getNonHeapMemoryUsage().getUsed(),
        "resident": _resident(jvm.java.lang.ProcessHandle.current().pid()),
    }
    for area, size in used.items():
        metrics.jvm_memory.labels(service, area).set(size)
    metrics.jvm_heap_limit.labels(service).set(heap.getMax())
    # A collector that does not tell has -1.
    now: float = sum(max(one.getCollectionTime(), 0) for one in factory.getGarbageCollectorMXBeans()) / 1000
    metrics.jvm_collections.labels(service).inc(max(now - collected, 0.0))
    return now


def _resident(process: int) -> float:
    """Return the bytes of a process of this machine that are in memory; NaN if the system does not tell."""
    try:
        pages = (PROCESSES / str(process) / "statm").read_text().split()[1]
    except (OSError, IndexError):
        return math.nan
    return float(int(pages) * os.sysconf("SC_PAGE_SIZE"))
