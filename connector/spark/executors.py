"""The executors of a cluster: waits for them, verifies that they can run this package, notices when they are lost.

With master local[N] there are none, and nothing is checked. Spark itself waits for executors without end, and warns
only in its own log.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Event, Thread
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import cloudpickle

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import ConfigError, SparkUnavailable
from connector.spark import probe
from connector.spark.probe import unreachable
from connector.spark.session import SparkRun, answering, ended, root_cause
from connector.spark.source.options import as_options

LOG: Final = logging.getLogger(__name__)

LIBRARIES: Final[Mapping[str, str]] = {
    "pyarrow": "pyarrow",
    "pandas": "pandas",  # without which Spark's Arrow functions refuse to run
    "confluent_kafka": "confluent-kafka",
}
# What tasks run, for the applier and for the DataFrame source: these import every compiled module that tasks use.
MODULES: Final = ("connector.spark.stream.range_task", "connector.spark.source.task")
WAIT: Final = 0.2  # seconds between two queries at start
STEADY_SECONDS: Final = 1.0  # without a new executor, after which the probe begins
PROBE_SECONDS: Final = 60.0  # at least, for the probe: the first Python of an executor may start slowly
CHECK_SECONDS: Final = 1.0  # between two queries while the applier runs
_ROUNDS: Final = 3  # of the probe, until each executor has answered
_GROUP: Final = "thl-probe"
_NO_PROGRAM: Final = re.compile(r'Cannot run program "[^"]*": [^\n]*')
_ERROR: Final = re.compile(r"^[\w.]+(?:Error|Exception): .*", re.MULTILINE)  # the last line of a Python traceback
_INSTALL: Final = (
    "install this package, as here, for the Python of the executors, or name another Python with apply.spark: "
    "{spark.pyspark.python: PROGRAM}; docs/cluster.md"
)


class Executors:
    """The executors of one session.

    Args:
        session: the session.
        config: the configuration; executors get the name and the brokers of the log alone.
        clock: measures waits.
    """

    def __init__(self, session: SparkRun, config: Config, clock: Clock) -> None:
        self._session = session
        self._config = config
        self._clock = clock
        self._timeout = config.apply.executor_timeout
        self._checked = clock.monotonic()
        self._present = clock.monotonic()  # when there were executors

    def prepare(self, stop: Event) -> None:
        """Wait for executors, and verify each of them; return early once `stop` is set.

        Raises:
            SparkUnavailable: no executor, or no task of one, starts in time; the cluster has ended the application.
            ConfigError: an executor lacks this package or has another one, or cannot reach the brokers.
            SparkGone: the session's JVM has ended.
        """
        if self._session.slots:
            return
        slots = 1 if self._dynamic() else self._wait(stop)
        if stop.is_set():
            return
        found = self._probe(slots, stop)
        if stop.is_set():
            return
        mine = probe.describe(MODULES, LIBRARIES, None)
        for other in found:
            compare(mine, other)
        failed = [one for one in found if one["brokers"]]
        # Brokers that do not answer here either are waited for later.
        if failed and not unreachable(as_options(self._config)):
            raise ConfigError(
                f"an executor cannot reach the brokers: {failed[0]['brokers']}",
                hint="executors read the log: the addresses of kafka.bootstrap and those that the brokers advertise "
                "must be reachable from them, and files that kafka.properties names must lie there, too",
                host=failed[0]["host"],
                bootstrap=self._config.kafka.bootstrap,
            )
        LOG.info("executors are ready", extra={"executors": len(found), "python": found[0]["executable"]})
        self._present = self._checked = self._clock.monotonic()

    def check(self) -> None:
        """Check that the application still has executors; asks Spark at most once a second.

        Raises:
            SparkUnavailable: the cluster has ended the application, or there was no executor for the whole timeout.
            SparkGone: the session's JVM has ended.
        """
        now = self._clock.monotonic()
        if self._session.slots or now - self._checked < CHECK_SECONDS:
            return
        self._checked = now
        if self._slots() or self._dynamic():
            self._present = now
        elif now - self._present >= self._timeout:
            raise self._none("all executors are lost, and none has started")

    def _wait(self, stop: Event) -> int:
        """Wait until no more executors arrive; return the number of tasks that they can run at once."""
        LOG.info("waiting for executors", extra={"seconds": self._timeout})
        began = since = self._clock.monotonic()
        slots = 0
        while not stop.is_set():
            now, found = self._clock.monotonic(), self._slots()
            if found != slots:
                slots, since = found, now
            if slots and now - since >= STEADY_SECONDS:
                break
            if not slots and now - began >= self._timeout:
                raise self._none("no executor with a free core has started")
            self._clock.sleep(WAIT)
        return slots

    def _none(self, what: str) -> SparkUnavailable:
        return SparkUnavailable(
            f"{what}, for {self._timeout:g} s",
            hint="the master's web UI shows workers and their free cores and memory; see spark.executor.memory, "
            "spark.executor.cores, spark.cores.max and spark.task.cpus in apply.spark. An executor that starts slowly "
            "needs a longer apply.executor_timeout",
            master=self._config.apply.master,
        )

    def _slots(self) -> int:
        """Return the number of tasks that the executors can run at once.

        Raises:
            SparkUnavailable: the cluster has ended the application.
            SparkGone: the JVM has ended.
        """
        with answering():
            context: Any = self._session.spark.sparkContext._jsc.sc()
            if context.isStopped():
                raise ended(self._config.apply.master)
            return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))

    def _dynamic(self) -> bool:
        """Return True if Spark starts and ends executors by load: having none is then no failure."""
        return self._session.spark.sparkContext.getConf().get("spark.dynamicAllocation.enabled", "false") == "true"

    def _probe(self, slots: int, stop: Event) -> list[dict[str, Any]]:
        """Return the description of each executor; none once `stop` is set."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for _ in range(_ROUNDS):
            # As many tasks as fit at once: Spark deals them out to all executors.
            found |= {(one["host"], one["folder"]): one for one in self._run(slots, stop)}
            if stop.is_set() or len(found) >= self._count():
                break
        return list(found.values())

    def _count(self) -> int:
        with answering():
            # The driver is the first of them.
            context: Any = self._session.spark.sparkContext._jsc.sc()
            return len(context.statusTracker().getExecutorInfos()) - 1

    def _run(self, tasks: int, stop: Event) -> list[dict[str, Any]]:
        """Run `tasks` tasks that describe their Python, in bounded time."""
        context = self._session.spark.sparkContext
        describe = probe.task(MODULES, LIBRARIES, as_options(self._config))
        answer: Future[list[dict[str, Any]]] = Future()

        def run() -> None:
            try:
                context.setJobGroup(_GROUP, "checks the executors", interruptOnCancel=True)
                answer.set_result(context.parallelize(range(tasks), tasks).mapPartitions(describe).collect())
            except BaseException as error:  # noqa: BLE001 (raised where the answer is awaited)
                answer.set_exception(error)

        # Spark sends the code of the probe itself: executors may not have its module.
        cloudpickle.register_pickle_by_value(probe)  # type: ignore[no-untyped-call]
        Thread(target=run, daemon=True, name=_GROUP).start()
        began = self._clock.monotonic()
        end = began + max(self._timeout, PROBE_SECONDS)
        while not answer.done() and not stop.is_set() and self._clock.monotonic() < end:
            wait([answer], WAIT)
        if not answer.done():
            with suppress(Py4JError, OSError):
                context.cancelJobGroup(_GROUP)
            if stop.is_set():
                return []
            raise SparkUnavailable(
                f"executors do not finish a task that imports this package, for {end - began:g} s",
                hint="the application's page in the master's web UI has the executors' logs",
                master=self._config.apply.master,
            )
        if (error := answer.exception()) is not None:
            self._slots()  # raises if the cluster or the JVM has ended
            raise self._failed(error) from error
        return answer.result()

    def _failed(self, error: BaseException) -> ConfigError:
        """Return the error for a probe that no executor could run."""
        python, text = self._session.spark.sparkContext.pythonExec, str(error)
        if "PYTHON_VERSION_MISMATCH" in text:
            what = "the executors' Python has another version than this one"
        elif "Cannot run program" in text:
            what = "executors cannot start their Python"
        else:
            what = "executors cannot run Python"
        return ConfigError(what, hint=_INSTALL, program=python, cause=reason(text))


def compare(mine: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Compare the description of an executor with that of this process; libraries may differ.

    Raises:
        ConfigError: the executor cannot run this package.
    """
    where = {"host": other["host"], "program": other["executable"]}
    if other["missing"]:
        module, why = next(iter(other["missing"].items()))
        raise ConfigError(f"an executor cannot import {module}", hint=_INSTALL, **where, cause=why)
    if other["package"] != mine["package"]:
        raise ConfigError(
            "an executor has another version of this package",
            hint=_INSTALL,
            **where,
            expected=mine["package"],
            found=other["package"],
        )
    if other["libraries"] != mine["libraries"]:
        LOG.warning(
            "an executor has other versions of libraries",
            extra={**where, "expected": mine["libraries"], "found": other["libraries"]},
        )


def reason(text: str) -> str:
    """Return what explains a failed task: the program that does not start, or the last error of a traceback."""
    if (unstarted := _NO_PROGRAM.search(text)) is not None:
        return unstarted[0]
    errors = _ERROR.findall(text.partition("\n\tat ")[0])
    return errors[-1] if errors else root_cause(text)
