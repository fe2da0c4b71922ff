"""Writes a log's rows to Kafka as Debezium's messages: one topic per table, committed transactions only, each once.

    log ─► executors: rows, envelopes ─► driver: one Kafka transaction a micro-batch, with its progress

Spark's own sink writes at least once, because its checkpoint is separate from the messages. So a transactional producer
in the driver writes messages and progress in one Kafka transaction, and each start continues from that progress with a
new checkpoint folder. A transaction of the source is never in two Kafka transactions: a consumer with
`isolation.level=read_committed` gets all of it or nothing.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from connector import errors
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, ConnectorError, HistoriesDiffer, LogDamaged
from connector.log.ids import Epoch, Seqno
from connector.spark import checkpoint
from connector.spark.debezium.envelope import SPARK_MESSAGES, Envelopes
from connector.spark.debezium.sink import Sink, SinkProgress
from connector.spark.session import root_cause
from connector.spark.source.ends import Ends
from connector.spark.source.offset import LogOffset
from connector.spark.source.read import stream_thl

LOG: Final = logging.getLogger(__name__)
_NAMED: Final = re.compile(r"connector\.errors\.(\w+): (.*)")
EVENTS: Final = 20_000  # maximum number of events of a micro-batch, and so of a Kafka transaction


@dataclass(frozen=True, slots=True)
class RowsOptions:
    """The options of a run.

    Args:
        prefix: the first part of the topics' names, and the source's logical name.
        tombstones: write a message without value after each delete.
        partitions: number of partitions of a new topic.
        events: maximum number of events of a Kafka transaction.
        until_now: stop once all events that were finished at the start are written.
    """

    prefix: str
    tombstones: bool = True
    partitions: int = 1
    events: int = EVENTS
    until_now: bool = False


class EventRows:
    """One run.

    Args:
        spark: the Spark session that reads the log.
        config: service and brokers.
        options: the options of the run.
        folder: folder for Spark's own progress, which is never used; None: the system's folder for temporary files.
        clock: the clock for timeouts.
        stop: set from outside to end the run after the current Kafka transaction.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: Config,
        options: RowsOptions,
        *,
        folder: Path | None,
        clock: Clock,
        stop: Event,
    ) -> None:
        self._spark = spark
        self._config = config
        self._options = options
        self._folder = folder
        self._clock = clock
        self._stop = stop
        self._sink = Sink(config, options.prefix, partitions=options.partitions, clock=clock)
        self._progress: SinkProgress | None = None
        self._error: ConnectorError | None = None
        self._last: LogOffset | None = None  # the offset at which to stop, with `until_now`

    def run(self) -> SinkProgress | None:
        """Write until asked to stop.

        Returns:
            The last event whose messages are written; None if there is none.

        Raises:
            Fenced: a newer run with this prefix and service has started.
            HistoriesDiffer: the written messages come from another log.
            ConnectorError: any other error.
        """
        try:
            self._progress = self._sink.open()
            start = self._start()
            LOG.info("writing rows", extra={"from_seqno": start.seqno + 1, "prefix": self._options.prefix})
            if self._last is None or start.seqno < self._last.seqno:
                self._follow(start)
        finally:
            self._sink.close()
        return self._progress

    def _start(self) -> LogOffset:
        """Return the offset after the written messages, verified against the log."""
        with Ends(self._config, self._clock) as ends:
            if self._options.until_now:
                self._last = ends.latest()
            if self._progress is None:
                return ends.earliest()
            if self._progress.seqno > ends.latest().seqno:
                raise HistoriesDiffer(
                    "the log ends before the last written event",
                    hint="was the log re-created? write its rows with another --prefix",
                    seqno=self._progress.seqno,
                )
            found = ends.after(self._progress.seqno)
            offset = LogOffset(self._progress.log_id, found.seqno, self._progress.epoch, found.partitions)
            ends.verify(offset)
            return offset

    def _follow(self, start: LogOffset) -> None:
        folder = checkpoint.fresh(self._folder)
        stream = stream_thl(
            self._spark,
            self._config,
            startingOffsets=json.dumps(start.as_json()),
            maxEventsPerTrigger=self._options.events,
            newQuery=True,
            layout=True,
        )
        writer = stream.writeStream.foreachBatch(self._guarded(start)).option("checkpointLocation", os.fspath(folder))
        query = None
        try:
            query = writer.start()
            while not self._stop.is_set() and not self._done(query) and not query.awaitTermination(1):
                pass
            if self._error is not None:
                raise self._error
        except PySparkException as error:
            raise (self._error or _failure(error)) from error
        finally:
            if query is not None:
                try:
                    query.stop()
                except (Py4JError, PySparkException, OSError) as error:
                    LOG.debug("the query has ended already: %s", error)
            checkpoint.remove(folder)

    def _done(self, query: Any) -> bool:
        """Return True once every event up to the end is written."""
        if self._last is None:
            return False
        progress = query.lastProgress
        end = progress["sources"][0]["endOffset"] if progress else None
        if end is None:
            return False
        return LogOffset.from_json(end if isinstance(end, dict) else json.loads(end)).seqno >= self._last.seqno

    def _guarded(self, start: LogOffset) -> Callable[[DataFrame, int], None]:
        """Return the function for each micro-batch, which keeps its error: Spark keeps only the text."""

        def write(batch: DataFrame, _number: int) -> None:
            try:
                self._write(batch, start)
            except ConnectorError as error:
                self._error = error
                raise

        return write

    def _write(self, batch: DataFrame, start: LogOffset) -> None:
        """Write one Kafka transaction; a micro-batch without rows is skipped, and read again after a restart."""
        messages = batch.mapInArrow(_enveloping(self._options.prefix, self._options.tombstones), SPARK_MESSAGES)
        if len(start.partitions) > 1:
            messages = messages.orderBy("seqno", "change", "part")
        last: Row | None = None
        for row in messages.toLocalIterator(prefetchPartitions=True):
            if last is None:
                self._sink.begin()
            elif row["seqno"] < last["seqno"]:
                raise LogDamaged("an event comes after a later one", seqno=row["seqno"], after=last["seqno"])
            last = row
            self._sink.send(row["topic"], _bytes(row["key"]), _bytes(row["value"]))
        if last is not None:
            progress = SinkProgress(start.log_id, Seqno(last["seqno"]), Epoch(last["epoch"]))
            self._sink.commit(progress)
            self._progress = progress


def _enveloping(prefix: str, tombstones: bool) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    return lambda batches: Envelopes(prefix, tombstones=tombstones).batches(batches)


def _failure(error: PySparkException) -> ConnectorError:
    """Convert the error that ended a query: a worker's error, whose text Spark has, or one of Spark's."""
    if (found := _NAMED.search(str(error))) is not None:
        kind = getattr(errors, found[1], None)
        if isinstance(kind, type) and issubclass(kind, ConnectorError):
            return kind(found[2])
    return BrokerUnavailable(f"Spark stopped: {root_cause(error)}", hint="see Spark's own messages above, if any")


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
