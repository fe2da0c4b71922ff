"""Reads the log from given offsets on, in one of two modes that it changes by itself.

    micro-batch  `MicroBatches`: as many messages at once as fit; each batch has a cost before its first row
    continuous   `Continuous`: each message as it arrives; only at the log's end, and if the driver is the executor

Each mode begins at given offsets, so either can take over from the other anywhere. The change to continuous mode costs
no throughput: its query starts beside the micro-batches, reads the same messages, and takes over once every partition
is being read. For the change back the continuous query is stopped first, because its messages are late already.

    MICRO_BATCH ──idle, and at the log's end──► STARTING ──every partition is read──► CONTINUOUS
         ▲                                         │                                      │
         └────busy, failed, or partitions wait─────┴───────busy, or partitions wait───────┘
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from types import TracebackType
from typing import Final, Self

from connector import metrics
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, ConfigError
from connector.kafka.consumer import KafkaConsumer
from connector.spark.session import SparkRun
from connector.spark.settings import continuous_heap
from connector.spark.stream.batch_sizer import BatchSizer
from connector.spark.stream.continuous import Continuous
from connector.spark.stream.load_monitor import REFUSED_WINDOWS, WINDOW, LoadMonitor
from connector.spark.stream.micro_batches import MicroBatches
from connector.spark.stream.parts import Batch, Part, end_of, partition_of, since
from connector.spark.stream.range_task import MESSAGES, Compaction

LOG: Final = logging.getLogger(__name__)

PATIENCE: Final = 5.0  # seconds for the brokers to return the log's ends
LAG_SECONDS: Final = 5.0  # seconds between two requests for the log's end, in continuous mode


class Mode(Enum):
    """The reading modes."""

    MICRO_BATCH = "micro-batch"
    STARTING = "starting continuous"  # micro-batches continue while the continuous query starts
    CONTINUOUS = "continuous"


class LogStream:
    """Reads the messages of a service's event topic.

    Args:
        session: the Spark session.
        config: brokers, service, size of batches.
        offsets: partition → first offset, for every partition of the topic; EARLIEST for its beginning.
        clock: the clock for counting messages.
        load: counts messages; outlives this stream.
        largest: maximum bytes of a message of the topic; 0: messages are small.
        compaction: how the tasks of micro-batches compact, and what those of both modes leave out.

    Raises:
        ConfigError: Spark refuses to read.
        SparkGone: the session's JVM has ended.
    """

    def __init__(
        self,
        session: SparkRun,
        config: Config,
        offsets: Mapping[int, int],
        clock: Clock,
        load: LoadMonitor,
        *,
        largest: int = 0,
        compaction: Compaction = MESSAGES,
    ) -> None:
        self._session = session
        self._config = config
        self._offsets = dict(offsets)
        self._clock = clock
        self._sizer = BatchSizer(config.apply.batch_messages, config.apply.batch_bytes)
        self._load = load
        self._compaction = compaction
        self._left_out: frozenset[int] = frozenset()
        self.continuous_possible = config.apply.continuous and self._slots_suffice() and self._heap_suffices(largest)
        self._end = KafkaConsumer(config.kafka, f"{config.topic}.end")
        self._end_asked = 0.0
        self._background = ThreadPoolExecutor(1, thread_name_prefix="reading")
        self._starting: Future[Continuous] | None = None  # the query of continuous mode, in STARTING
        self._gauge = metrics.continuous_mode.labels(config.service)
        self._stream: MicroBatches | Continuous
        self._read_by(self._micro_batches())

    @property
    def mode(self) -> Mode:
        """The current mode."""
        if isinstance(self._stream, Continuous):
            return Mode.CONTINUOUS
        return Mode.MICRO_BATCH if self._starting is None else Mode.STARTING

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, BrokerUnavailable) and self.mode is Mode.CONTINUOUS:
            self._load.failed()
        self._stream.stop()
        self._call_off()
        self._gauge.set(0)
        self._background.shutdown()
        self._end.close()

    def next(self, timeout: float) -> Batch | None:
        """Return the next messages. The call confirms that the caller has accepted those of the previous call.

        Args:
            timeout: seconds to wait for messages.

        Raises:
            BrokerUnavailable: Spark could not read, or brokers do not answer.
            SparkGone: Spark's JVM has ended, or one message is too large for it.
        """
        if self._change_mode():
            return None
        batch = self._stream.next(timeout)
        self._count(batch)
        return None if batch is None else self._unseen(batch)

    @property
    def tasks_run(self) -> bool:
        """True while tasks read what `next` is to return."""
        return isinstance(self._stream, MicroBatches) and self._stream.tasks_run

    def leave_out(self, partitions: frozenset[int]) -> None:
        """Read only the other partitions, until the next call; at least one is left.

        Args:
            partitions: the partitions whose messages would only wait.
        """
        if partitions == self._left_out:
            return
        LOG.debug("some partitions wait for others", extra={"left_out": sorted(partitions)})
        self._left_out = partitions
        self._to_micro_batches()

    def _change_mode(self) -> bool:
        """Change the mode if the load requires it: all transitions except that of `leave_out`.

        Returns:
            True if another query reads from now on.
        """
        match self.mode:
            case Mode.MICRO_BATCH:
                if self._idle_at_end():
                    self._starting = self._background.submit(self._continuous, dict(self._offsets))
            case Mode.STARTING:
                started = self._started()
                if self._left_out or (started is not None and not self._load.idle):
                    self._call_off()
                elif started is not None and started.ready():
                    self._to_continuous(started)
                    return True
            case Mode.CONTINUOUS:
                self._ask_for_lag()
                if not self._load.idle:
                    self._to_micro_batches()
                    return True
        return False

    def _idle_at_end(self) -> bool:
        """Return True while the load and the lag allow continuous mode."""
        if self._left_out or not self.continuous_possible or not self._load.idle:
            return False
        # The batches show how much was read, not how much is left.
        self._load.set_lag(self._end.lag(self._config.topic, self._offsets, PATIENCE))
        return self._load.idle

    def _started(self) -> Continuous | None:
        """Return the query of continuous mode once Spark has started it; None before, and after a failure."""
        if self._starting is None or self._left_out or not self._starting.done():
            return None
        try:
            started = self._starting.result()
            started.check()
        except (BrokerUnavailable, ConfigError) as error:
            LOG.warning(
                "continuous mode could not start: micro-batches continue, and it is tried again later",
                extra={"seconds": REFUSED_WINDOWS * WINDOW, "why": error},
            )
            self._load.refused()
            self._call_off()
            return None
        return started

    def _ask_for_lag(self) -> None:
        now = self._clock.monotonic()
        if now - self._end_asked >= LAG_SECONDS:
            self._end_asked = now
            self._load.set_lag(self._end.lag(self._config.topic, self._offsets, PATIENCE))

    def _to_continuous(self, started: Continuous) -> None:
        """Switch to the started query, and stop the micro-batches in the background."""
        self._starting = None
        self._background.submit(self._stream.stop)
        self._read_by(started)

    def _to_micro_batches(self) -> None:
        """Stop the current query, and read micro-batches from its offsets on."""
        self._stream.stop()
        self._read_by(self._micro_batches())

    def _call_off(self) -> None:
        """Stop the query that is starting, if there is one."""
        if self._starting is None:
            return
        starting, self._starting = self._starting, None
        if starting.exception() is None:
            starting.result().stop()

    def _read_by(self, stream: MicroBatches | Continuous) -> None:
        self._stream = stream
        self._gauge.set(isinstance(stream, Continuous))
        LOG.debug("reading on", extra={"by": type(stream).__name__, "offsets": self._offsets})

    def _count(self, batch: Batch | None) -> None:
        now = self._clock.monotonic()
        if batch is None:
            self._load.seen(now)
        else:
            self._load.seen(now, batch.messages, batch.size, full=batch.full)

    def _unseen(self, batch: Batch) -> Batch | None:
        """Return what the other mode's query has not returned already; move the offsets after it."""
        parts: list[Part] = []
        for part in batch.parts:
            number = partition_of(part)
            if (new := since(part, self._offsets[number])) is not None:
                self._offsets[number] = end_of(new)
                parts.append(new)
        return Batch.of(parts, full=batch.full) if parts else None

    def _slots_suffice(self) -> bool:
        """Return True if this process's JVM has a task slot for each partition and one for micro-batches."""
        if len(self._offsets) < self._session.slots:
            return True
        fields = {"master": self._config.apply.master, "partitions": len(self._offsets)}
        if self._session.slots:
            needed = "no continuous mode: it needs apply.master local[N], N above the number of partitions"
            LOG.info(needed, extra={"slots": self._session.slots, **fields})
        else:
            LOG.info("micro-batches alone: on a cluster there is no continuous mode", extra=fields)
        return False

    def _heap_suffices(self, largest: int) -> bool:
        """Return True if the JVM's heap has room for the queued messages of continuous mode."""
        needed, heap = continuous_heap(len(self._offsets), largest), self._session.heap
        if needed <= heap:
            return True
        LOG.warning(
            "no continuous mode: messages may be too large for Spark's heap; raise apply.heap, or lower "
            "max.message.bytes of the topic to that of kafka.max_message_bytes (larger rows come in parts)",
            extra={
                "topic": self._config.topic,
                "max_message_bytes": largest,
                "heap_needed": needed,
                "heap": heap,
            },
        )
        return False

    def _micro_batches(self) -> MicroBatches:
        return MicroBatches(
            self._session,
            self._config.kafka,
            topic=self._config.topic,
            offsets={number: at for number, at in self._offsets.items() if number not in self._left_out},
            sizer=self._sizer,
            queue_batches=self._config.apply.queue_batches,
            interleaved=len(self._offsets) > 1,
            compaction=self._compaction,
        )

    def _continuous(self, offsets: Mapping[int, int]) -> Continuous:
        return Continuous(
            self._session,
            self._config.kafka,
            topic=self._config.topic,
            offsets=offsets,
            clock=self._clock,
            target=self._compaction.shortens,
        )
