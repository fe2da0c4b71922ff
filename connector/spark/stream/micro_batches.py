"""Micro-batch mode: Spark's tasks read the log in micro-batches, up to a limit, and compact what they read.

`foreachBatch` calls back in a thread of py4j in this process. That thread has the tasks read the batch's offsets, in
slices that fit into memory, and queues what they have made of them, so that the next slice is read while this one is
applied. While Spark's Python workers start, which takes seconds, it reads the slices itself.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.errors import BrokerUnavailable, SparkGone
from connector.kafka.range_reader import RangeReader
from connector.spark import checkpoint
from connector.spark import settings as spark_settings
from connector.spark.session import RunningQuery, SparkRun, answering, gone, root_cause
from connector.spark.stream.batch_queue import BatchQueue, QueueClosed
from connector.spark.stream.batch_sizer import MOST, BatchSizer
from connector.spark.stream.kafka_source import offsets_stream, task_ranges
from connector.spark.stream.parts import Batch
from connector.spark.stream.python_workers import PythonWorkers
from connector.spark.stream.range_task import JVM_BYTES, Compaction, RangeTask, TaskRange, shared
from connector.spark.stream.task_result import FAILED, ResultPiece, deserialized, failure_of, joined_pieces

LOG: Final = logging.getLogger(__name__)
SLOW_SECONDS: Final = 60.0  # for which tasks may read before each warning
QUEUE_BYTES: Final = 64 << 20  # maximum bytes of queued batches
SHARES: Final = 16  # a task reads at least 1/16 of what is read at once; a smaller share costs more than it saves


class TooLarge(Exception):
    """Raised when a batch does not fit into Spark's memory: it must be read again in smaller batches."""


class Reported(Exception):
    """Raised to end a query whose error the applier already has."""


class MicroBatches:
    """Reads the messages of one topic from given offsets on, batch by batch, each partition in its order.

    Args:
        session: the session.
        kafka: brokers and their properties.
        topic: the event topic.
        offsets: partition → first offset, for every partition to read; EARLIEST for its beginning.
        sizer: decides how much is read at once; outlives this reader.
        queue_batches: maximum number of batches that wait for the applier.
        interleaved: true: the log has several partitions.
        compaction: how tasks compact.

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
        sizer: BatchSizer,
        queue_batches: int,
        interleaved: bool,
        compaction: Compaction,
    ) -> None:
        self._session = session
        self._sizer = sizer
        self._interleaved = interleaved
        self._begun: set[int] = set()  # partitions of which something was read
        self._clock = SystemClock()
        self._tasks_began: float | None = None
        self._warned = 0.0
        self._queue = BatchQueue(queue_batches, QUEUE_BYTES)
        # Executors on other machines do not see this one's files.
        self._folder = Path(tempfile.mkdtemp(dir=session.folder)) if session.slots else None
        self._task = RangeTask(kafka=kafka, topic=topic, compaction=compaction, spool=self._folder)
        with answering():
            options = {"maxOffsetsPerTrigger": str(MOST)}
            frame = offsets_stream(session, kafka, topic=topic, offsets=offsets, options=options)
            writer = frame.writeStream.options(**spark_settings.NO_LOG).foreachBatch(self._accept)
        self._workers = PythonWorkers(session, SystemClock(), self._task)
        self._workers.start()
        session.callbacks.begin()
        try:
            self._query = RunningQuery(session, writer)
        except BaseException:
            session.callbacks.end()
            raise

    def next(self, timeout: float) -> Batch | None:
        """Return the next batch; None if none comes within `timeout` seconds.

        Raises:
            BrokerUnavailable: Spark could not read.
            SparkGone: the session's JVM has ended, or one message is too large for it.
        """
        batch = self._queue.get(timeout)
        if batch is None:
            self._query.check()
            self._warn_of_slow_tasks()
        return batch

    @property
    def tasks_run(self) -> bool:
        """True while tasks read a batch: Spark waits without limit for a Python worker that is stopped."""
        return self._tasks_began is not None

    def _warn_of_slow_tasks(self) -> None:
        """Log, once a minute, that tasks do not end."""
        began, now = self._tasks_began, self._clock.monotonic()
        if began is None or now < max(began, self._warned) + SLOW_SECONDS:
            return
        self._warned = now
        LOG.warning(
            "Spark's tasks do not end: are the brokers slow, or is a Python worker stopped (pyspark.daemon)? Starting "
            "thl apply again loses nothing",
            extra={"seconds": round(now - began)},
        )

    def stop(self) -> None:
        """Stop the query; a batch that waits for room is dropped."""
        self._queue.close()
        self._query.stop()
        self._session.callbacks.end()
        if self._folder is not None:
            checkpoint.remove(self._folder)

    def _accept(self, frame: DataFrame, _number: int) -> None:
        """Read and queue a batch. Spark calls this in a thread of its own; an exception ends the query."""
        try:
            for batch in self._slices(self._joined(task_ranges(frame))):
                if batch.parts:
                    self._queue.put(batch)
        except QueueClosed:
            return
        except BaseException as error:  # noqa: BLE001 (the applier gets it in full)
            self._queue.fail(_failure(error))
            # Spark searches the text of a query's last error with a regular expression that needs stack for each
            # character: a long text overflows the stack, and prints a thousand lines on the terminal.
            raise Reported from None

    def _joined(self, ranges: list[TaskRange]) -> list[TaskRange]:
        """Return a batch's ranges, one for each partition."""
        found: dict[int, TaskRange] = {}
        for one in sorted(ranges, key=lambda one: one.begin):
            first = found.setdefault(one.partition, replace(one, first=one.partition not in self._begun))
            found[one.partition] = replace(first, end=one.end)
        self._begun |= found.keys()
        return list(found.values())

    def _slices(self, rest: list[TaskRange]) -> Iterator[Batch]:
        """Yield what tasks have made of a batch's ranges, slice by slice; each has a share of every partition."""
        while rest:
            count = -(-sum(map(len, rest)) // self._sizer.messages)
            interval = self._sizer.interval if self._interleaved else 0
            cut = [replace(one, interval=interval, large=self._sizer.large).cut(count) for one in rest]
            try:
                pieces = self._read([first for first, _ in cut])
            except TooLarge:
                if not self._sizer.refused():
                    raise SparkGone("one message does not fit into Spark's memory", hint="raise apply.heap") from None
                continue
            results = joined_pieces(pieces, self._folder)
            left_out = sum(piece.left_out for piece in pieces)
            batch = Batch.of((part for one in results for part in deserialized(one)), full=count > 1, left_out=left_out)
            self._sizer.seen(batch.messages, batch.size, batch.events)
            rest = [after for _, after in cut if len(after)]
            yield batch

    def _read(self, ranges: list[TaskRange]) -> list[ResultPiece]:
        """Have tasks read ranges; while workers start, read them here."""
        offsets = sum(map(len, ranges))
        most = max(-(-offsets // self._session.tasks), self._sizer.messages // SHARES)
        if self._folder is None:
            most = min(most, self._sizer.fitting(JVM_BYTES))
        tasks = shared(ranges, most)
        if self._workers.starting:
            return self._read_here(tasks)
        context = self._session.spark.sparkContext
        try:
            self._tasks_began = self._clock.monotonic()
            pieces: list[ResultPiece] = context.parallelize(tasks, len(tasks)).mapPartitions(self._task).collect()
        except Exception as error:
            if "spark.driver.maxResultSize" in str(error):
                raise TooLarge from error
            raise
        finally:
            self._tasks_began = None
        for piece in pieces:
            if piece.number == FAILED:
                raise failure_of(piece)
        return pieces

    def _read_here(self, tasks: Iterable[Sequence[TaskRange]]) -> list[ResultPiece]:
        """Do what tasks would do; the first error ends it."""
        kafka, topic = self._task.kafka, self._task.topic
        with closing(RangeReader(kafka, topic, SystemClock(), lambda: self._queue.closed)) as reader:
            return [piece for task in tasks for task_range in task for piece in self._task.pieces(task_range, reader)]


def _failure(error: BaseException) -> BaseException:
    """Convert the error that ended a batch to an error of this connector."""
    if isinstance(error, Py4JNetworkError | OSError):
        return gone()
    if isinstance(error, Py4JError | PySparkException):
        failure = BrokerUnavailable(
            "Spark could not read a batch",
            hint="are the brokers of kafka.bootstrap up? does the batch fit (apply.batch_bytes, apply.heap)?",
            cause=root_cause(error),
        )
        failure.__cause__ = error
        return failure
    return error
