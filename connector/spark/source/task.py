"""Reads one offset range of a partition in a task, as batches of Arrow.

Memory is bounded, whatever the size of an event: at most `BUFFERED` bytes of an unfinished event are kept. Of a larger
event only the offset is kept, and the event is read again once it is finished.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

import pyarrow as pa

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import LogDamaged
from connector.kafka.consumer import KafkaConsumer, KafkaMessage
from connector.kafka.message_batch import batch_of
from connector.log.compact.scan import Messages, Scanner
from connector.log.format.header import FragmentHeader
from connector.log.format.message import Message
from connector.log.format.row_parts import RowParts
from connector.log.ids import Outcome
from connector.log.reading.offset_range import DONE, GIVE_UP, PART, WHOLE, OffsetRange, OffsetRangeReader
from connector.spark.source.changes import Changes
from connector.spark.source.columns import arrow_schema

BUFFERED: Final = 16 << 20  # bytes of an unfinished event
BATCH_BYTES: Final = 4 << 20
BATCH_ROWS: Final = 8192
PATIENCE: Final = 60.0  # seconds without a message
WAIT: Final = 1.0  # seconds of one wait for messages
LARGEST: Final = 1 << 30  # bytes of one response of Kafka's protocol, about


class Task:
    """One task.

    Args:
        config: service and brokers.
        bounds: the range.
        clock: the clock for `PATIENCE`.
        layout: true if rows have the columns of their tables.
    """

    def __init__(self, config: Config, bounds: OffsetRange, clock: Clock, *, layout: bool) -> None:
        self._config = config
        self._bounds = bounds
        self._clock = clock
        self._schema = arrow_schema(layout=layout)
        self._scanner = Scanner(config.topic)
        self._changes = Changes(config.topic, layout)
        self._row_parts = RowParts(config.topic)
        self._held: list[Message] = []
        self._size = 0
        self._again: int | None = None  # the first offset of an event that is too large to keep

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the row changes in the log's order.

        Raises:
            BrokerUnavailable: the brokers do not answer.
            LogDamaged: an event or fragment is missing or damaged.
            HistoriesDiffer: the topic holds another log.
        """
        reader = OffsetRangeReader(self._config.topic, self._bounds)
        for messages in self._messages(self._bounds.begin):
            done = yield from self._read(reader, messages)
            if done or reader.finished:
                break
        if self._changes.rows:
            yield self._changes.drain(self._schema)

    def _read(self, reader: OffsetRangeReader, messages: Messages) -> Generator[pa.RecordBatch, None, bool]:
        """Read messages.

        Returns:
            True if the range ends with them.
        """
        while True:
            if len(messages) > 1 and reader.accept_range(messages.event_range()):
                for message in messages:
                    self._add([message], message.header)
                    yield from self._full()
                return False
            message = messages.message(0)
            verdict = reader.accept(message.header, message.offset)
            if verdict == DONE:
                return True
            if verdict == GIVE_UP:
                self._forget()
            elif verdict == PART:
                self._hold(message)
            elif verdict == WHOLE:
                yield from self._whole(message)
            if len(messages) == 1:
                return False
            messages = messages.since(1)

    def _whole(self, last: Message) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a finished event."""
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
                        "an event has changed since it was read",
                        at=f"{self._config.topic}-{message.partition}@{message.offset}",
                        seqno=last.header.seqno,
                        found=message.header.seqno,
                    )
                if (whole := self._row_parts.whole(message)) is not None:
                    number, rows = self._changes.add(whole, last.header, number, rows)
                    yield from self._full()
                if message.header.last_frag:
                    return

    def _add(self, messages: list[Message], last: FragmentHeader) -> None:
        number = rows = 0
        for message in filter(None, map(self._row_parts.whole, messages)):
            number, rows = self._changes.add(message, last, number, rows)

    def _hold(self, message: Message) -> None:
        """Keep a fragment until its event is whole; of a large event keep only the first offset."""
        if self._again is not None:
            return
        self._size += message.size
        if self._size > BUFFERED:
            self._again = self._held[0].offset if self._held else message.offset
            self._held = []
            return
        message.own()
        self._held.append(message)

    def _forget(self) -> None:
        self._held, self._size, self._again = [], 0, None

    def _full(self) -> Iterator[pa.RecordBatch]:
        """Yield a batch once enough rows are collected."""
        if self._changes.rows >= BATCH_ROWS or self._changes.size >= BATCH_BYTES:
            yield self._changes.drain(self._schema)

    def _messages(self, begin: int) -> Iterator[Messages]:
        """Yield committed messages from an offset on, without an end."""
        topic, partition = self._config.topic, self._bounds.partition
        settings = {
            "enable.partition.eof": False,
            "fetch.wait.max.ms": 20,
            # Messages beyond the range are dropped; a larger message is fetched alone.
            "queued.max.messages.kbytes": 32 << 10,
            "fetch.message.max.bytes": 4 << 20,
            "fetch.max.bytes": 16 << 20,
            "receive.message.max.bytes": LARGEST,
        }
        with KafkaConsumer(self._config.kafka, f"{topic}.spark", settings=settings) as consumer:
            consumer.assign(topic, {partition: begin})
            last_message = self._clock.monotonic()
            while True:
                found = [message for message in consumer.drain(WAIT) if isinstance(message, KafkaMessage)]
                if found:
                    last_message = self._clock.monotonic()
                    yield from self._scanner.scan(batch_of(found))
                elif self._clock.monotonic() - last_message > PATIENCE:
                    at = f"{topic}-{partition}"
                    raise consumer.silent("the end of an offset range", at=at, begin=begin, end=self._bounds.end)
