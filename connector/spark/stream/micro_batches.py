"""Micro-batch mode: Spark's tasks read the log in micro-batches, up to a limit, and compact what they read.

`foreachBatch` calls back in a thread of py4j in this process. That thread collects the parcels of the tasks and queues
their parts, so that Spark reads the next batch while this one is applied.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable
from connector.spark import checkpoint
from connector.spark import settings as spark_settings
from connector.spark.session import RunningQuery, SparkRun, answering, gone, root_cause
from connector.spark.stream.handover import Closed, Handover
from connector.spark.stream.parcel import opened, unpacked
from connector.spark.stream.parts import Batch
from connector.spark.stream.range_source import NAME, Limits, Plan, RangeSource

HANDOVER_BYTES: Final = 64 << 20  # maximum bytes of queued batches


class TooLarge(Exception):
    """Raised when a batch does not fit into Spark's memory: it must be read again in smaller batches."""


class Reported(Exception):
    """Raised to end a query whose error the applier already has."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """Whether tasks compact, and how.

    Args:
        tasks: false: the applier needs each event by itself.
        columns: the target's metadata columns, as pairs of a value and a name.
        events: true: the target gets each event, to write it down.
    """

    tasks: bool = False
    columns: tuple[tuple[str, str], ...] = ()
    events: bool = False


MESSAGES: Final = Compaction()  # tasks compact nothing


class MicroBatches:
    """Reads the messages of one topic from given offsets on, batch by batch, each partition in its order.

    Args:
        session: the session.
        kafka: brokers and their properties.
        topic: the event topic.
        offsets: partition → first offset, for every partition of the topic; EARLIEST for its beginning.
        limits: how much the first batches read.
        queue_batches: maximum number of batches that wait for the applier.
        compaction: what tasks do.

    Raises:
        ConfigError: Spark refuses the query.
        SparkGone: the session's JVM has ended.
    """

    def __init__(
        self,
        session: SparkRun,
        kafka: Kafka,
        *,
        topic: str,
        offsets: Mapping[int, int],
        limits: Limits,
        queue_batches: int,
        compaction: Compaction,
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=session.folder))
        self._file = self._folder / "limits"
        self.limits = limits
        limits.write(self._file)
        # Executors on other machines do not see this one's files.
        self._spooled = session.slots > 0
        plan = Plan(
            topic=topic,
            offsets=offsets,
            compact=compaction.tasks,
            columns=compaction.columns,
            events=compaction.events,
            tasks=session.tasks,
            limits=str(self._file),
            spool=str(self._folder) if self._spooled else "",
        )
        self._handover = Handover(queue_batches, HANDOVER_BYTES)
        with answering():
            session.spark.dataSource.register(RangeSource)
            frame = session.spark.readStream.format(NAME).options(**plan.options(kafka)).load()
            writer = frame.writeStream.options(**spark_settings.NO_LOG).foreachBatch(self._accept)
        self._query = RunningQuery(session, writer)

    def next(self, timeout: float) -> Batch | None:
        """Return the next batch; None if none comes within `timeout` seconds.

        Raises:
            TooLarge: a batch does not fit.
            BrokerUnavailable: Spark could not read.
            SparkGone: the session's JVM has ended.
        """
        batch = self._handover.get(timeout)
        if batch is None:
            self._query.check()
        return batch

    def limit(self, limits: Limits) -> None:
        """Limit the batches that are not planned yet."""
        if limits != self.limits:
            self.limits = limits
            limits.write(self._file)

    def stop(self) -> None:
        """Stop the query; a batch that waits for room is dropped."""
        self._handover.close()
        self._query.stop()
        checkpoint.remove(self._folder)

    def _accept(self, frame: DataFrame, _number: int) -> None:
        """Queue a batch. Spark calls this in a thread of its own; an exception ends the query."""
        try:
            batch = Batch.of(part for parcel in self._parcels(frame.toArrow()) for part in unpacked(parcel))
            if batch.parts:
                self._handover.put(batch)
        except Closed:
            return
        except BaseException as error:  # noqa: BLE001 (the applier gets it in full)
            self._handover.fail(_failure(error))
            # Spark searches the text of a query's last error with a regular expression that needs stack for each
            # character: a long text overflows the stack, and prints a thousand lines on the terminal.
            raise Reported from None

    def _parcels(self, rows: pa.Table) -> list[pa.Buffer]:
        """Return the parcels of a batch, those of each partition in order."""
        *places, contents = rows.columns
        keys = zip(*(place.to_pylist() for place in places), strict=True)
        ordered = sorted(zip(keys, contents, strict=True), key=lambda row: row[0])
        if self._spooled:
            return [opened(content.as_py()) for _, content in ordered]
        tasks = groupby(ordered, key=lambda row: row[0][:2])
        return [pa.py_buffer(b"".join(content.as_buffer() for _, content in pieces)) for _, pieces in tasks]


def _failure(error: BaseException) -> BaseException:
    """Convert the error that ended a batch to an error of this connector."""
    if isinstance(error, Py4JNetworkError | OSError):
        return gone()
    if "spark.driver.maxResultSize" in str(error):
        return TooLarge()
    if isinstance(error, Py4JError | PySparkException):
        failure = BrokerUnavailable(
            "Spark could not read a batch",
            hint="are the brokers of kafka.bootstrap up? does the batch fit (apply.batch_messages, apply.heap)?",
            cause=root_cause(error),
        )
        failure.__cause__ = error
        return failure
    return error
