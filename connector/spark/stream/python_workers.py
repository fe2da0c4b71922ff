"""Starts Spark's Python workers on this machine before they are needed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any, Final

from connector.clock import Clock
from connector.spark.session import SparkRun

LOG: Final = logging.getLogger(__name__)
PATIENCE: Final = 60.0  # seconds


class PythonWorkers:
    """The Python workers of a session.

    Spark starts them with the first tasks, which then wait for seconds until the workers have imported what tasks use;
    and it ends those that were idle for a minute.

    Args:
        session: the session.
        clock: the clock for `PATIENCE`.
        task: the function of the tasks that will come; it is given none here, but a worker imports what it needs.
    """

    def __init__(self, session: SparkRun, clock: Clock, task: Callable[[Iterable[Any]], Iterable[object]]) -> None:
        self._session = session
        self._clock = clock
        self._task = task
        self._began = 0.0
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start them in the background; on a cluster nothing is done."""
        if self._session.slots:
            self._began = self._clock.monotonic()
            self._thread = Thread(target=self._run, name="thl-python-workers", daemon=True)
            self._thread.start()

    @property
    def starting(self) -> bool:
        """True from `start` until they can run tasks, or `PATIENCE` has passed."""
        if self._thread is None or not self._thread.is_alive():
            return False
        if self._clock.monotonic() - self._began < PATIENCE:
            return True
        LOG.warning("Spark's Python workers do not start", extra={"seconds": PATIENCE})
        self._thread = None
        return False

    def _run(self) -> None:
        slots = self._session.slots
        try:
            self._session.spark.sparkContext.parallelize((), slots).mapPartitions(self._task).collect()
        except Exception:
            LOG.debug("the Python workers have not started", exc_info=True)
