"""One task: a portion of one partition, read by a consumer of its own and given as batches of Arrow.

Memory is bounded, whatever the size of an event: what is held of one that is not whole yet is little; of a larger one
only its place is kept, and it is read again once it is known to be finished.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

import pyarrow as pa

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, LogDamaged
from connector.kafka.arrow_reader import arrow_batch
from connector.kafka.consumer import KafkaConsumer, KafkaMessage
from connector.log.compact.scan import Messages, Scanner
from connector.log.format.header import FragmentHeader
from connector.log.format.message import Message
from connector.log.format.row_parts import RowParts
from connector.log.ids import Outcome
from connector.log.reading.offset_range import DONE, GIVE_UP, TAKE, WHOLE, OffsetRange, OffsetRangeReader
from connector.spark.source.changes import Changes
from connector.spark.source.columns import arrow_schema

HELD: Final = 16 << 20  # bytes of an event that is not whole yet
BATCH_BYTES: Final = 4 << 20
BATCH_ROWS: Final = 8192
PATIENCE: Final = 60.0  # seconds without a message
LOOK: Final = 1.0
LARGEST: Final = 1 << 30  # what Kafka's protocol can send in one answer, about


class Task:
    """Reads one portion.

    Args:
        config: service and brokers.
        bounds: which portion.
        clock: for the patience.
        layout: whether rows tell the columns of their tables.
    """

    def __init__(self, config: Config, bounds: OffsetRange, clock: Clock, *, layout: bool) -> None:
        self._config = config
        self._bounds = bounds
        self._clock = clock
        self._schema = arrow_schema(layout=layout)
        self._scanner = Scanner(config.topic)
        self._changes = Changes(config.topic, layout)
        self._chunks = RowParts(config.topic)
        self._held: list[Message] = []
        self._size = 0
        self._again: int | None = None  # where the event that is too large to be held begins

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The row changes, in the log's order.

        Raises:
            BrokerUnavailable: the brokers do not answer.
            LogDamaged: something is missing, or is not what it should be.
            HistoriesDiffer: the topic holds another log.
        """
        portion = OffsetRangeReader(self._config.topic, self._bounds)
        for messages in self._messages(self._bounds.begin):
            done = yield from self._scanned(portion, messages)
            if done or portion.finished:
                break
        if self._changes.rows:
            yield self._changes.drain(self._schema)

    def _scanned(self, portion: OffsetRangeReader, messages: Messages) -> Generator[pa.RecordBatch, None, bool]:
        """Take messages; returns whether nothing behind them is wanted."""
        while True:
            if len(messages) > 1 and portion.accept_range(messages.event_range()):
                for message in messages:
                    self._add([message], message.header)
                    yield from self._full()
                return False
            message = messages.message(0)
            verdict = portion.accept(message.header, message.offset)
            if verdict == DONE:
                return True
            if verdict == GIVE_UP:
                self._forget()
            elif verdict == TAKE:
                self._hold(message)
            elif verdict == WHOLE:
                yield from self._whole(message)
            if len(messages) == 1:
                return False
            messages = messages.since(1)

    def _whole(self, last: Message) -> Iterator[pa.RecordBatch]:
        """An event is finished: its rows are given."""
        held, again = self._held, self._again
        self._forget()
        if last.header.outcome is Outcome.VOID:
            return
        if again is None:
            self._add([*held, last], last.header)
            yield from self._full()
            return
        number = rows = 0
        for messages in self._messages(again):
            for message in messages:
                if message.header.seqno != last.header.seqno or message.header.epoch != last.header.epoch:
                    raise LogDamaged(
                        "an event is not the one that was read a moment ago",
                        at=f"{self._config.topic}-{message.partition}@{message.offset}",
                        seqno=last.header.seqno,
                        found=message.header.seqno,
                    )
                if (whole := self._chunks.whole(message)) is not None:
                    number, rows = self._changes.add(whole, last.header, number, rows)
                    yield from self._full()
                if message.header.last_frag:
                    return

    def _add(self, messages: list[Message], last: FragmentHeader) -> None:
        number = rows = 0
        for message in filter(None, map(self._chunks.whole, messages)):
            number, rows = self._changes.add(message, last, number, rows)

    def _hold(self, message: Message) -> None:
        """Keep a fragment until its event is whole, or only where the event begins."""
        if self._again is not None:
            return
        self._size += message.size
        if self._size > HELD:
            self._again = self._held[0].offset if self._held else message.offset
            self._held = []
            return
        message.own()
        self._held.append(message)

    def _forget(self) -> None:
        self._held, self._size, self._again = [], 0, None

    def _full(self) -> Iterator[pa.RecordBatch]:
        """A batch, once there is enough for one."""
        if self._changes.rows >= BATCH_ROWS or self._changes.size >= BATCH_BYTES:
            yield self._changes.drain(self._schema)

    def _messages(self, begin: int) -> Iterator[Messages]:
        """Committed messages from an offset on, without an end."""
        topic, partition = self._config.topic, self._bounds.partition
        settings = {
            "enable.partition.eof": False,
            "fetch.wait.max.ms": 20,
            # What a task has fetched beyond its range is dropped; a larger message comes alone.
            "queued.max.messages.kbytes": 32 << 10,
            "fetch.message.max.bytes": 4 << 20,
            "fetch.max.bytes": 16 << 20,
            "receive.message.max.bytes": LARGEST,
        }
        with KafkaConsumer(self._config.kafka, f"{topic}.spark", settings=settings) as consumer:
            consumer.assign(topic, {partition: begin})
            quiet = self._clock.monotonic()
            while True:
                found = [message for message in consumer.drain(LOOK) if isinstance(message, KafkaMessage)]
                if found:
                    quiet = self._clock.monotonic()
                    yield from self._scanner.scan(arrow_batch(found))
                elif self._clock.monotonic() - quiet > PATIENCE:
                    raise BrokerUnavailable(
                        "Kafka sends no more before the portion ends", at=f"{topic}-{partition}", begin=begin
                    )
