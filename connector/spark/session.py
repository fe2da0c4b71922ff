"""Starts a Spark session and runs a query.

Spark's own offsets are ahead of the target's and never used: each query begins at given offsets, with a new checkpoint
folder.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import current_thread, main_thread
from types import TracebackType
from typing import Any, Final, Self

from py4j.protocol import INPUT_CONVERTER, Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from connector.clock import SystemClock
from connector.config.apply import LOCAL, Apply
from connector.errors import BrokerUnavailable, ConfigError, SparkGone, SparkUnavailable
from connector.redaction import is_secret, secrets_of
from connector.spark import checkpoint
from connector.spark import settings as spark_settings
from connector.spark.callbacks import Callbacks
from connector.spark.jvm_errors import JvmErrors
from connector.spark.master import on_loopback, wait_for_master

LOG: Final = logging.getLogger(__name__)

_DAEMON = "connector.spark.stream.worker"
CLASS_PATH = "spark.driver.extraClassPath"
_PYTHON = "spark.pyspark.python"
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
# Settings that spark-submit needs before the JVM starts.
_AT_START = ("spark.master", "spark.driver.", "spark.jars", "spark.submit.", "spark.files", "spark.archives",
             "spark.app.name", "spark.yarn.", "spark.kubernetes.", "spark.kerberos.")  # fmt: skip
_SPARKS_PYTHON = "python3"  # without PYSPARK_PYTHON
_STOPPED = "stopped SparkContext"  # in the error of a call to it


class SparkRun:
    """A Spark session and its private folder.

    Args:
        apply: the configuration: master, heap, folder, further settings.
        name: name of the Spark application.
        jars: local jars of Spark's Kafka connector; without them Spark resolves the connector by its coordinates.
        own: True: this process starts Spark; False: spark-submit did, with its master, memory and JVM.
        jvm_options: returns further options of the JVM for the class path before Spark's own jars, unless `apply.spark`
            has the JVM's options.

    Raises:
        ConfigError: Spark does not start with these settings, or the folder is not safe from other users.
        SparkUnavailable: the cluster's master does not answer, or has ended the application already.
    """

    def __init__(
        self,
        apply: Apply,
        name: str,
        *,
        jars: tuple[Path, ...] = (),
        own: bool = True,
        jvm_options: Callable[[str], tuple[str, ...]] = lambda _: (),
    ) -> None:
        _forget_numpy()
        self.folder = checkpoint.fresh(apply.checkpoint_dir)
        builder = SparkSession.builder.appName(name)
        settings = self._settings(apply, jars, own=own) | apply.spark
        try:
            if own:
                _make_absolute(settings)
                _put_beside(settings)
                if _JVM_OPTIONS not in apply.spark:
                    further = jvm_options(settings.get(CLASS_PATH, ""))
                    settings[_JVM_OPTIONS] = " ".join([settings[_JVM_OPTIONS], *map(spark_settings.quoted, further)])
                LOG.info("starting Spark", extra={"master": settings["spark.master"]})
                wait_for_master(settings["spark.master"], apply.executor_timeout, SystemClock())
                settings |= _start_jvm(settings, self.folder)
            for key, value in settings.items():
                builder = builder.config(key, value)
            with _same_handler():
                SparkContext.getOrCreate(SparkConf().setAppName(name).setAll(list(settings.items())))
            self.spark = builder.getOrCreate()
        except (ConfigError, SparkUnavailable, KeyboardInterrupt):
            checkpoint.remove(self.folder)
            raise
        except Exception as error:
            checkpoint.remove(self.folder)
            if _STOPPED in str(error):
                _forget_stopped_context()
                raise ended(apply.master) from error
            raise ConfigError(
                f"Spark does not start: {_first_line(error)}", hint="see apply.* and apply.spark", master=apply.master
            ) from error
        self.callbacks = Callbacks()
        # The number of parallel tasks in this JVM; 0 if tasks run in other processes.
        self.slots = _slots(self.spark.sparkContext.master or "")
        self.spark.sparkContext.pythonExec = self._python()
        # The server of accumulators would print a traceback when the JVM ends before it.
        self.spark.sparkContext._accumulatorServer.handle_error = _unanswered  # type: ignore[method-assign,assignment]

    @property
    def heap(self) -> int:
        """Return the JVM's maximum heap in bytes.

        Raises:
            SparkGone: the JVM has ended.
        """
        with answering():
            return int(self.jvm.java.lang.Runtime.getRuntime().maxMemory())

    @property
    def jvm(self) -> Any:
        """Py4j's view of the JVM; calls to it go into `answering`."""
        return self.spark.sparkContext._jvm

    @property
    def tasks(self) -> int:
        """Return the number of tasks that run at once, here or in executors."""
        return self.slots or max(1, self.spark.sparkContext.defaultParallelism)

    def _python(self) -> str:
        """Return the Python program of workers.

        In this process's JVM it is this program. Spark starts `python3` in executors, which may be another one than
        this, unless PYSPARK_PYTHON names it; Spark reads `spark.pyspark.python` only under spark-submit.
        """
        context = self.spark.sparkContext
        if self.slots:
            return sys.executable
        default = sys.executable if context.pythonExec == _SPARKS_PYTHON else context.pythonExec
        return str(context.getConf().get(_PYTHON, default))

    def _settings(self, apply: Apply, jars: tuple[Path, ...], *, own: bool) -> dict[str, str]:
        chosen = dict(spark_settings.SETTINGS)
        if not own:
            return chosen
        log4j = self.folder / "log4j2.properties"
        log4j.write_text(spark_settings.LOG4J)
        chosen |= {
            "spark.master": apply.master,
            "spark.driver.memory": apply.heap,
            "spark.driver.extraJavaOptions": spark_settings.jvm_options(log4j, _jvm_folder(apply.checkpoint_dir)),
        }
        if on_loopback(apply.master):
            chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if apply.master.startswith("local"):
            chosen |= {
                "spark.local.dir": str(self.folder / "local"),
                "spark.python.daemon.module": _DAEMON,
            }
        if _slots(apply.master):
            # Other users of this machine could reach the driver's RPC, which deserialises what it gets. Spark itself
            # makes the secret where it runs in one JVM.
            chosen["spark.authenticate"] = "true"
        if jars:
            chosen["spark.jars"] = ",".join(map(str, jars))
        elif not apply.spark.keys() & {"spark.jars", "spark.jars.packages"}:
            chosen["spark.jars.packages"] = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version('pyspark')}"
        return chosen

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the session; a JVM that has ended already is no error."""
        try:
            self.spark.stop()
        except (Py4JError, OSError):
            # The JVM has ended already.
            return
        finally:
            checkpoint.remove(self.folder)


class RunningQuery:
    """A running query.

    Args:
        session: the session that runs it.
        writer: the query's sink, without a checkpoint folder.

    Raises:
        ConfigError: Spark refuses the query.
        SparkGone: the session's JVM has ended.
    """

    def __init__(self, session: SparkRun, writer: DataStreamWriter) -> None:
        self._folder = checkpoint.fresh(session.folder)
        with answering():
            self._query = writer.option("checkpointLocation", os.fspath(self._folder)).start()

    def check(self) -> None:
        """Check that the query still runs.

        Raises:
            BrokerUnavailable: Spark stopped reading; the message has the cause.
            SparkGone: the session's JVM has ended.
        """
        with answering():
            if self._query.isActive:
                return
            cause = self._query.exception()
        raise BrokerUnavailable(
            "Spark stopped reading", hint="are the brokers of kafka.bootstrap up?", cause=root_cause(cause)
        )

    def stop(self) -> None:
        """Stop the query."""
        try:
            self._query.stop()
        except (Py4JError, PySparkException, OSError):
            # The query or the JVM ended by itself meanwhile.
            return
        finally:
            checkpoint.remove(self._folder)


@contextmanager
def _same_handler() -> Iterator[None]:
    """Keep the handler of SIGINT: Spark's own calls the JVM, in the middle of another call if there is one."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if handler is not None and current_thread() is main_thread():
            signal.signal(signal.SIGINT, handler)


def _forget_numpy() -> None:
    """Remove the converters of numpy's values, which never go to the JVM: a call would import pandas (0.8 s)."""
    INPUT_CONVERTER[:] = [
        known for known in INPUT_CONVERTER if not isinstance(known, NumpyArrayConverter | NumpyScalarConverter)
    ]


def _unanswered(_request: object, _address: object) -> None:
    """Note that the JVM ended a connection; what waits for the JVM reports it."""
    LOG.debug("a connection of Spark's JVM has ended", exc_info=True)


@cache
def _jvm_folder(parent: Path | None) -> Path:
    """Create the JVM's working directory and temporary folder, which outlives the session, as the JVM does."""
    folder = checkpoint.fresh(parent)
    atexit.register(checkpoint.remove, folder)
    return folder


def _start_jvm(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Start the JVM with the settings that must be on its command line, which every user of the machine can read.

    The JVM's own options are in a file; it gets all other settings after its start.

    Args:
        settings: all settings.
        folder: a folder that only this user can read.

    Returns:
        Settings that replace some of these.

    Raises:
        ConfigError: a setting that must be on the command line contains a password; the JVM does not start.
    """
    file = folder / "jvm.options"
    options = shlex.split(settings.get(_JVM_OPTIONS, ""))
    file.write_text("".join('"{}"\n'.format(re.sub(r'(["\\])', r"\\\1", option)) for option in options))
    file.chmod(0o600)
    instead = {_JVM_OPTIONS: f'"@{file}"'}
    conf = SparkConf(loadDefaults=False)
    for name, value in {**settings, **instead}.items():
        if name.startswith(_AT_START) and not is_secret(name):
            if any(secrets_of(name, value)):
                raise ConfigError(
                    f"apply.spark: {name} contains a password, which every user could see on the command line",
                    hint="for a repository with a password use spark.jars.ivySettings, which names a file",
                )
            conf.set(name, value)
    errors = JvmErrors()
    try:
        if SparkContext._gateway is None:  # else an earlier session has started it
            with errors as output:
                gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
            SparkContext._ensure_initialized(gateway=gateway)
    except PySparkRuntimeError as error:
        raise ConfigError(
            f"Spark does not start: {errors.cause() or _first_line(error)}",
            hint="see apply.heap, apply.master and apply.spark",
            master=settings["spark.master"],
        ) from error
    finally:
        file.unlink()  # the JVM has read it
    return instead


def _slots(master: str) -> int:
    """Return the number of parallel tasks in the driver; 0 if executors are separate processes."""
    found = LOCAL.fullmatch(master)
    if found is None:
        return 0
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


def _make_absolute(settings: dict[str, str]) -> None:
    """Make paths of jars absolute, because the JVM has another working directory."""
    for key, separator in (("spark.jars", ","), (CLASS_PATH, os.pathsep)):
        if key in settings:
            parts = [part.strip() for part in settings[key].split(separator)]
            settings[key] = separator.join(
                part if not part or "://" in part or part.startswith("local:") else str(Path(part).absolute())
                for part in parts
            )


def _put_beside(settings: dict[str, str]) -> None:
    """Put jars on the class path if there is only one JVM: Spark would copy them, and load classes slower (2 s)."""
    jars = settings.get("spark.jars", "")
    if jars and "://" not in jars and _slots(settings["spark.master"]):
        there = [settings[CLASS_PATH]] if CLASS_PATH in settings else []
        settings[CLASS_PATH] = os.pathsep.join([*there, *settings.pop("spark.jars").split(",")])


@contextmanager
def answering() -> Iterator[None]:
    """Convert errors of calls to Spark's JVM to errors of this connector.

    Raises:
        ConfigError: Spark refuses the call.
        SparkGone: the JVM has ended.
    """
    try:
        yield
    except PySparkException as error:
        raise ConfigError(
            f"Spark refuses to read: {_first_line(error)}", hint="see kafka.spark_properties and apply.spark"
        ) from error
    except (Py4JError, OSError) as error:
        raise gone() from error


def gone() -> SparkGone:
    """Return the error for a JVM that does not answer."""
    return SparkGone("Spark's JVM has ended", hint="see Spark's own messages above, if any; start thl apply again")


def ended(master: str) -> SparkUnavailable:
    """Return the error for an application that the cluster has ended, or never accepted."""
    return SparkUnavailable(
        "Spark's cluster has ended the application, or its master does not answer",
        hint="see the logs of the master and of the workers: can executors start, and reach this machine "
        "(spark.driver.host, spark.driver.port)? then start thl apply again",
        master=master,
    )


def root_cause(error: object) -> str:
    """Return the error that ends a Python traceback in the text, or the last `Caused by` of Java, or the first line."""
    *_, traceback = str(error).rpartition("Traceback (most recent call last):\n")
    if traceback != str(error) and (raised := [line for line in traceback.splitlines() if line and line[0] != " "]):
        return raised[0]
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ") if causes else _first_line(error)


def _forget_stopped_context() -> None:
    """Let go of a context that the cluster stopped while it started: a later session would be given it."""
    context = SparkContext._active_spark_context
    if context is not None:
        with suppress(Py4JError, OSError):
            context.stop()


def _first_line(error: object) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
