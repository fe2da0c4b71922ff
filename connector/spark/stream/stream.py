"""Reading of the log from given offsets on, in one of two profiles that change by themselves.

    catch-up  `MicroBatches`: as much at once as fits; each batch costs before its first row
    latency   `Continuous`: each message as it comes; only at the log's end, and where Spark's executor is the driver

Both begin at offsets that are given to them, so one can take over from the other anywhere. Into the latency profile
nothing of the other's speed is lost meanwhile: its query starts beside the running one, reads the same messages, and
takes over once every partition is being read. Back it is stopped first: what comes is late already.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from connector import metrics
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, ConfigError, SparkGone
from connector.kafka.consumer import KafkaConsumer
from connector.spark import settings as profile
from connector.spark.session import Session
from connector.spark.stream.batch_sizer import BatchSizer
from connector.spark.stream.continuous import Continuous
from connector.spark.stream.load_monitor import LoadMonitor
from connector.spark.stream.micro_batches import MicroBatches, TooLarge

LOG: Final = logging.getLogger(__name__)

PATIENCE: Final = 5.0  # seconds for the brokers to return the log's ends
LOOK: Final = 5.0  # seconds between two looks at where the log's end is, in the latency profile


class LogStream:
    """The messages of a service's event topic.

    Args:
        session: Spark's.
        config: brokers, service, how much at once.
        offsets: partition → first offset, for every partition of the topic; EARLIEST where there is none.
        clock: by which messages are counted.
        calm: what was counted so far.
        largest: bytes that a message of the topic may have; 0: small ones.

    Raises:
        ConfigError: Spark refuses to read.
        SparkGone: the session's JVM has ended.
    """

    def __init__(
        self,
        session: Session,
        config: Config,
        offsets: Mapping[int, int],
        clock: Clock,
        calm: LoadMonitor,
        *,
        largest: int = 0,
    ) -> None:
        self._session = session
        self._config = config
        self._offsets = dict(offsets)
        self._clock = clock
        self._pace = BatchSizer(config.apply.batch_messages, config.apply.batch_bytes)
        self._calm = calm
        self._left_out: frozenset[int] = frozenset()
        self._possible = config.apply.continuous and len(offsets) < session.slots
        if config.apply.continuous and not self._possible:
            fields = {"master": config.apply.master, "slots": session.slots, "partitions": len(offsets)}
            LOG.info("no latency profile: it wants apply.master local[N], N above the partitions", extra=fields)
        if self._possible:
            self._possible = self._fits(largest)
        self._end = KafkaConsumer(config.kafka, f"{config.topic}.end")
        self._looked = 0.0
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="reading")
        self._coming: Future[Continuous] | None = None
        self._gauge = metrics.continuous_mode.labels(config.service)
        self._stream: MicroBatches | Continuous = self._micro_batches()
        self._turn_to(self._stream)

    def _fits(self, largest: int) -> bool:
        """Whether the JVM has room for what continuous reading holds; a message is in its heap before we see it."""
        needed = int((profile.HELD * len(self._offsets) * largest + profile.OWN) / profile.OLD)
        heap = self._session.heap
        if needed <= heap:
            return True
        LOG.warning(
            "no latency profile: messages may be too large for Spark's heap; raise apply.heap, or lower "
            "max.message.bytes of the topic to that of kafka.max_message_bytes (larger rows come in parts)",
            extra={
                "topic": self._config.topic,
                "max_message_bytes": largest,
                "heap_needed": needed,
                "heap": heap,
            },
        )
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, BrokerUnavailable) and isinstance(self._stream, Continuous):
            self._calm.failed()
        self._stream.stop()
        self._call_off()
        self._gauge.set(0)
        self._aside.shutdown()
        self._end.close()

    def next(self, timeout: float) -> pa.Table | None:
        """The next messages. When it is called, those that it gave before are taken.

        Args:
            timeout: seconds after which to come back without any.

        Returns:
            Columns partition, offset, value, each chunk of one partition in its order; a value is null where a
            message is too large for Spark.

        Raises:
            BrokerUnavailable: Spark could not read, or brokers do not answer.
            SparkGone: Spark's JVM has ended, or one message is too large for it.
        """
        if isinstance(self._stream, Continuous):
            batch = self._one_by_one(self._stream, timeout)
        else:
            batch = self._much_at_once(self._stream, timeout)
        return None if batch is None else self._new(batch)

    def leave_out(self, partitions: frozenset[int]) -> None:
        """Read the other partitions alone, until told otherwise; at least one is left.

        Args:
            partitions: what is read of them would only wait.
        """
        if partitions == self._left_out:
            return
        LOG.debug("some partitions wait for others", extra={"left_out": sorted(partitions)})
        self._left_out = partitions
        self._stream.stop()
        self._turn_to(self._micro_batches())

    def _much_at_once(self, stream: MicroBatches, timeout: float) -> pa.Table | None:
        """The catch-up profile."""
        if (ready := self._ready()) is not None:
            self._aside.submit(stream.stop)
            self._turn_to(ready)
            return None
        if (stream.most, stream.poll) != (self._pace.messages, self._pace.poll):
            stream.stop()
            self._turn_to(self._micro_batches())
            return None
        try:
            batch = stream.next(timeout)
        except TooLarge:
            if not self._pace.refused():
                raise SparkGone("one message does not fit into Spark's memory", hint="raise apply.heap") from None
            return None
        self._count(batch, full=batch is not None and batch.num_rows >= stream.most)
        if batch is not None:
            self._pace.seen(batch.num_rows, batch.nbytes, batch["value"].null_count)
        return batch

    def _one_by_one(self, stream: Continuous, timeout: float) -> pa.Table | None:
        """The latency profile."""
        now = self._clock.monotonic()
        if now - self._looked >= LOOK:
            self._looked = now
            self._calm.behind(self._end.lag(self._config.topic, self._offsets, PATIENCE))
        if not self._calm.calm:
            stream.stop()
            self._turn_to(self._micro_batches())
            return None
        batch = stream.next(timeout)
        self._count(batch)
        return batch

    def _count(self, batch: pa.Table | None, *, full: bool = False) -> None:
        now = self._clock.monotonic()
        if batch is None:
            self._calm.seen(now)
        else:
            self._calm.seen(now, batch.num_rows, batch.nbytes, full=full)

    def _new(self, batch: pa.Table) -> pa.Table | None:
        """Leave out what the other profile's stream has given already; note what is given now."""
        parts = [part for found in batch.to_batches() if (part := self._unseen(found)).num_rows]
        for part in parts:
            number, last = part["partition"][0].as_py(), part["offset"][part.num_rows - 1].as_py()
            self._offsets[number] = max(self._offsets[number], last + 1)
        return pa.Table.from_batches(parts) if parts else None

    def _unseen(self, part: pa.RecordBatch) -> pa.RecordBatch:
        """What of a chunk, all of one partition, has not been given."""
        if not part.num_rows:
            return part
        first = self._offsets[part["partition"][0].as_py()]
        if part["offset"][0].as_py() >= first:
            return part
        return part.filter(pc.greater_equal(part["offset"], pa.scalar(first)))

    def _ready(self) -> Continuous | None:
        """The latency profile's stream, once it may take over."""
        if self._left_out:
            self._call_off()
            return None
        if self._coming is None:
            if self._calm.calm and self._possible:
                # A batch tells of what it read, not of what is left.
                self._calm.behind(self._end.lag(self._config.topic, self._offsets, PATIENCE))
            if self._calm.calm and self._possible:
                self._coming = self._aside.submit(self._continuous, dict(self._offsets))
            return None
        if not self._coming.done():
            return None
        try:
            stream = self._coming.result()
            stream.check()
        except (BrokerUnavailable, ConfigError) as error:
            LOG.warning("Spark does not read continuously; in batches it does", extra={"why": error})
            self._calm.refused()
        if not self._calm.calm:
            self._call_off()
            return None
        if not stream.ready():
            return None
        self._coming = None
        return stream

    def _call_off(self) -> None:
        """End what was to take over, if there is something."""
        if self._coming is None:
            return
        coming, self._coming = self._coming, None
        if coming.exception() is None:
            coming.result().stop()

    def _turn_to(self, stream: MicroBatches | Continuous) -> None:
        self._stream = stream
        self._gauge.set(isinstance(stream, Continuous))
        LOG.debug("reading on", extra={"by": type(stream).__name__, "offsets": self._offsets})

    def _micro_batches(self) -> MicroBatches:
        return MicroBatches(
            self._session,
            self._config.kafka,
            topic=self._config.topic,
            offsets={number: at for number, at in self._offsets.items() if number not in self._left_out},
            most=self._pace.messages,
            poll=self._pace.poll,
            waiting=self._config.apply.queue_batches,
        )

    def _continuous(self, offsets: Mapping[int, int]) -> Continuous:
        return Continuous(
            self._session, self._config.kafka, topic=self._config.topic, offsets=offsets, clock=self._clock
        )
