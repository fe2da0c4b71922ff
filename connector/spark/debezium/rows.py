"""A log's rows as Debezium's messages on Kafka: one topic a table, committed transactions only, each exactly once.

    log ─► executors: rows, envelopes ─► driver: one Kafka transaction a micro-batch, with its progress

Spark's own sink writes at least once, and its checkpoint is beside what was written. So the driver writes, with a
transactional producer, messages and progress in one Kafka transaction, and each start reads from that progress on in
a checkpoint folder of its own. A transaction of the source is never in two Kafka transactions: who reads committed
messages only, meets all of it or nothing.
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
from connector.spark.debezium.sink import Progress, Sink
from connector.spark.session import root_cause
from connector.spark.source.ends import Ends
from connector.spark.source.offset import LogOffset
from connector.spark.source.read import stream_thl

LOG: Final = logging.getLogger(__name__)
_NAMED: Final = re.compile(r"connector\.errors\.(\w+): (.*)")
EVENTS: Final = 20_000  # of a micro-batch, and so of a Kafka transaction, at most


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is written.

    Args:
        prefix: what topics begin with; the source's logical name.
        tombstones: a message without value behind each delete.
        partitions: of a topic, when it is made.
        events: of a Kafka transaction, at most.
        until_now: end once all events are written that were finished when it began.
    """

    prefix: str
    tombstones: bool = True
    partitions: int = 1
    events: int = EVENTS
    until_now: bool = False


class Rows:
    """One run.

    Args:
        spark: where the log is read.
        config: service and brokers.
        wanted: what is written.
        folder: in which Spark keeps its own progress, which is never trusted; None: the system's for temporary files.
        clock: for patience.
        stop: set by whoever wants it to end; it does after the Kafka transaction that is going on.
    """

    def __init__(
        self, spark: SparkSession, config: Config, wanted: Wanted, *, folder: Path | None, clock: Clock, stop: Event
    ) -> None:
        self._spark = spark
        self._config = config
        self._wanted = wanted
        self._folder = folder
        self._clock = clock
        self._stop = stop
        self._sink = Sink(config, wanted.prefix, partitions=wanted.partitions, clock=clock)
        self._progress: Progress | None = None
        self._error: ConnectorError | None = None
        self._last: LogOffset | None = None  # where to end, with `until_now`

    def run(self) -> Progress | None:
        """Write until asked to stop.

        Returns:
            How far the messages go, None when there are none.

        Raises:
            Fenced: a newer writer of this name has begun.
            HistoriesDiffer: what was written is not of this log.
            ConnectorError: whatever else is found.
        """
        try:
            self._progress = self._sink.open()
            start = self._start()
            LOG.info("writing rows", extra={"from_seqno": start.seqno + 1, "prefix": self._wanted.prefix})
            if self._last is None or start.seqno < self._last.seqno:
                self._follow(start)
        finally:
            self._sink.close()
        return self._progress

    def _start(self) -> LogOffset:
        """Behind what was written, proved to be of this log."""
        with Ends(self._config, self._clock) as ends:
            if self._wanted.until_now:
                self._last = ends.latest()
            if self._progress is None:
                return ends.earliest()
            if self._progress.seqno > ends.latest().seqno:
                raise HistoriesDiffer(
                    "The log ends before what was written of it",
                    hint="it was made anew: write its rows under another prefix",
                    seqno=self._progress.seqno,
                )
            found = ends.behind(self._progress.seqno)
            place = LogOffset(self._progress.log_id, found.seqno, self._progress.epoch, found.partitions)
            ends.prove(place)
            return place

    def _follow(self, start: LogOffset) -> None:
        folder = checkpoint.fresh(self._folder)
        stream = stream_thl(
            self._spark,
            self._config,
            startingOffsets=json.dumps(start.as_json()),
            maxEventsPerTrigger=self._wanted.events,
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
            raise (self._error or _ours(error)) from error
        finally:
            if query is not None:
                try:
                    query.stop()
                except (Py4JError, PySparkException, OSError) as error:
                    LOG.debug("the query has ended already: %s", error)
            checkpoint.remove(folder)

    def _done(self, query: Any) -> bool:
        """Whether everything is written that was asked for."""
        if self._last is None:
            return False
        progress = query.lastProgress
        told = progress["sources"][0]["endOffset"] if progress else None
        if told is None:
            return False
        return LogOffset.from_json(told if isinstance(told, dict) else json.loads(told)).seqno >= self._last.seqno

    def _guarded(self, start: LogOffset) -> Callable[[DataFrame, int], None]:
        """What Spark calls for each micro-batch; the error that ends it is kept, because Spark makes a text of it."""

        def take(batch: DataFrame, _number: int) -> None:
            try:
                self._write(batch, start)
            except ConnectorError as error:
                self._error = error
                raise

        return take

    def _write(self, batch: DataFrame, start: LogOffset) -> None:
        """One Kafka transaction; none for a micro-batch without rows, which is read again after a restart."""
        messages = batch.mapInArrow(_enveloping(self._wanted.prefix, self._wanted.tombstones), SPARK_MESSAGES)
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
            progress = Progress(start.log_id, Seqno(last["seqno"]), Epoch(last["epoch"]))
            self._sink.commit(progress)
            self._progress = progress


def _enveloping(prefix: str, tombstones: bool) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    return lambda batches: Envelopes(prefix, tombstones=tombstones).batches(batches)


def _ours(error: PySparkException) -> ConnectorError:
    """What ended a query: an error of ours in a worker, of which Spark tells the text, or one of Spark's."""
    if (found := _NAMED.search(str(error))) is not None:
        kind = getattr(errors, found[1], None)
        if isinstance(kind, type) and issubclass(kind, ConnectorError):
            return kind(found[2])
    return BrokerUnavailable(f"Spark stopped: {root_cause(error)}", hint="its own words are above, if it had any")


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
