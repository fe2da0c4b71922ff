"""Spark reads the log: a session, and a stream of Arrow batches out of Kafka. The only module that knows pyspark.

Spark's own offsets run ahead of the target and are never trusted: each stream begins at offsets that are given to
it, in a checkpoint folder of its own. `foreachBatch` calls back in a thread of py4j in this process; there the
batch is collected as Arrow and handed over, so that Spark reads the next one while this one is applied.
Executors run no Python.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, length, when
from pyspark.sql.streaming.query import StreamingQuery

from connector.config import Apply, Kafka
from connector.errors import BrokerUnavailable, ConfigError, SparkGone
from connector.reassemble import checkpoint, profile
from connector.reassemble.handover import Closed, Handover
from connector.reassemble.large import LARGE

EARLIEST = -2  # Spark's word for a partition's first offset


class TooLarge(Exception):
    """A batch does not fit into Spark's memory: fewer messages are to be read at once."""


class Told(Exception):
    """Ends a query; why is told to the applier already."""


class Session:
    """A Spark session, and the folder in which it may write.

    Args:
        apply: master, heap, folder, further settings.
        name: of the application.
        jars: the Kafka connector's, local files; without any they are resolved by Spark from their coordinates.
        own: whether this process starts Spark; otherwise spark-submit did, and master, memory and JVM are its.

    Raises:
        ConfigError: Spark does not start with these settings.
    """

    def __init__(self, apply: Apply, name: str, *, jars: tuple[Path, ...] = (), own: bool = True) -> None:
        self.folder = checkpoint.fresh(apply.checkpoint_dir)
        builder = SparkSession.builder.appName(name)
        for key, value in (self._settings(apply, jars, own=own) | apply.spark).items():
            builder = builder.config(key, value)
        try:
            self.spark = builder.getOrCreate()
        except Exception as error:
            checkpoint.remove(self.folder)
            raise ConfigError(
                f"Spark does not start: {_first_line(error)}", hint="see apply.* and apply.spark", master=apply.master
            ) from error

    def _settings(self, apply: Apply, jars: tuple[Path, ...], *, own: bool) -> dict[str, str]:
        chosen = dict(profile.SETTINGS)
        if not own:
            return chosen
        log4j = self.folder / "log4j2.properties"
        log4j.write_text(profile.LOG4J)
        chosen |= {
            "spark.master": apply.master,
            "spark.driver.memory": apply.heap,
            "spark.driver.extraJavaOptions": profile.jvm_options(str(log4j)),
        }
        if apply.master.startswith("local"):
            chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
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
        """End the session, as far as it is still there."""
        try:
            self.spark.stop()
        except (Py4JError, OSError):
            # The JVM is gone already: that is what was wanted.
            return
        finally:
            checkpoint.remove(self.folder)


class Stream:
    """The messages of one topic from given offsets on, handed over batch by batch in the log's order.

    Args:
        session: where it runs.
        kafka: brokers and their properties.
        topic: the event topic.
        messages: how many at once, at most.
        offsets: partition → first offset, for every partition of the topic; EARLIEST where there is none.
        handover: where batches go, each an Arrow table of partition, offset, value, with null for the value of a
            message that is larger than LARGE. Its `fail` tells what ended the stream.

    Raises:
        SparkGone: the session's JVM has ended.
    """

    def __init__(
        self,
        session: Session,
        kafka: Kafka,
        *,
        topic: str,
        messages: int,
        offsets: Mapping[int, int],
        handover: Handover,
    ) -> None:
        self._handover = handover
        self._folder = checkpoint.fresh(session.folder)
        options = {
            **profile.OPTIONS,
            **{f"kafka.{name.removeprefix('kafka.')}": value for name, value in kafka.spark_properties.items()},
            "kafka.bootstrap.servers": kafka.bootstrap,
            "assign": json.dumps({topic: sorted(offsets)}),
            "startingOffsets": json.dumps({topic: {str(number): at for number, at in offsets.items()}}),
            **profile.batching(messages),
        }
        try:
            self._query = self._started(session, options)
        except (Py4JError, OSError) as error:
            raise _gone() from error

    def _started(self, session: Session, options: Mapping[str, str]) -> StreamingQuery:
        reader = session.spark.readStream.format("kafka")
        for key, value in options.items():
            reader = reader.option(key, value)
        carried = when(length("value") <= LARGE, col("value")).alias("value")
        frame = reader.load().select("partition", "offset", carried)
        writer = frame.writeStream.options(**profile.NO_LOG).option("checkpointLocation", os.fspath(self._folder))
        return writer.foreachBatch(self._take).start()

    def check(self) -> None:
        """See whether it still runs.

        Raises:
            BrokerUnavailable: Spark could not read on; the message says why.
            SparkGone: its JVM has ended.
        """
        try:
            if self._query.isActive:
                return
            cause = self._query.exception()
        except (Py4JError, OSError) as error:
            raise _gone() from error
        raise BrokerUnavailable(
            f"Spark stopped reading: {_root_cause(cause)}", hint="are the brokers of kafka.bootstrap up?"
        )

    def stop(self) -> None:
        """End it; a batch that waits for room is dropped."""
        self._handover.close()
        try:
            self._query.stop()
        except (Py4JError, PySparkException, OSError):
            # It ended by itself meanwhile, or the JVM has.
            return
        finally:
            checkpoint.remove(self._folder)

    def _take(self, frame: DataFrame, _number: int) -> None:
        """Called by Spark, in a thread of its own: an exception here ends the query."""
        try:
            batch = frame.toArrow()
            if batch.num_rows:
                self._handover.put(batch)
        except Closed:
            return
        except BaseException as error:  # noqa: BLE001 (it is told in full to the applier)
            self._handover.fail(_told(error))
            # Spark looks through the text of what ends a query with an expression that needs stack for each
            # character of it: a long text overflows it, which is a thousand lines on the terminal.
            raise Told from None


def _gone() -> SparkGone:
    return SparkGone("Spark's JVM has ended", hint="its own words are above, if it had any; start thl apply again")


def _told(error: BaseException) -> BaseException:
    """What the applier is to raise for what ended a batch."""
    if isinstance(error, Py4JNetworkError | OSError):
        return _gone()
    if "spark.driver.maxResultSize" in str(error):
        return TooLarge()
    if isinstance(error, Py4JError | PySparkException):
        failure = BrokerUnavailable(
            f"Spark could not read a batch: {_root_cause(error)}",
            hint="are the brokers of kafka.bootstrap up? does the batch fit (apply.batch_messages, apply.heap)?",
        )
        failure.__cause__ = error
        return failure
    return error


def _first_line(error: object) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _root_cause(error: object) -> str:
    """The last `Caused by` of a Java stack trace in the text, or its first line."""
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ") if causes else _first_line(error)
