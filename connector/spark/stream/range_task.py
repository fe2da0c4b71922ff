"""Reads one offset range in a Python worker of Spark, and reduces it to segments. It has no effects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from connector.clock import Clock
from connector.config.kafka import Kafka
from connector.errors import LogDamaged
from connector.kafka.range_reader import RangeReader
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.segment import Unread
from connector.spark.stream.parts import Part
from connector.spark.stream.segment_builder import SegmentBuilder

TASK_BYTES: Final = 128 << 20  # bytes of messages after which a task leaves the rest of its range to the driver

_readers: dict[str, RangeReader] = {}  # this worker's, by their brokers: a connection costs more than a range


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range of a partition's offsets.

    Args:
        partition: the partition.
        begin, end: the offsets, `end` not included.
        first: the stream begins here. The first message then stays one: it tells the driver's sequencer the epoch.
    """

    partition: int
    begin: int
    end: int
    first: bool = False


@dataclass(frozen=True, slots=True)
class RangeTask:
    """Reads ranges of one log.

    Args:
        kafka: the brokers and their properties.
        topic: the event topic.
        compact: false: all messages stay messages.
        columns: the target's metadata columns; None if it has none.
        events: true: segments have their events one by one.
        clock: the clock for timeouts.
    """

    kafka: Kafka
    topic: str
    compact: bool
    columns: MetadataColumns | None
    events: bool
    clock: Clock

    def parts(self, bounds: Bounds) -> Iterator[Part]:
        """Yield the parts of a range in the order of their offsets.

        Raises:
            BrokerUnavailable: the brokers do not answer, or no longer have the messages.
        """
        builder = SegmentBuilder(self.topic, bounds.partition, self.columns, events=self.events)
        compact, alone = self.compact, bounds.first
        size = 0
        reader = self._reader()
        try:
            for batch in reader.batches(bounds.partition, bounds.begin, bounds.end):
                begin = batch["offset"][0].as_py()
                if size > TASK_BYTES:
                    yield from builder.finish()
                    yield Unread(bounds.partition, begin, bounds.end, bounds.end - begin, 0)
                    return
                size += batch.nbytes
                if not compact:
                    yield batch
                    continue
                try:
                    builder.add(batch, alone=alone)
                except LogDamaged:
                    # The driver reads them itself, and says what is wrong.
                    yield from builder.finish()
                    yield Unread(bounds.partition, begin, bounds.end, bounds.end - begin, 0)
                    return
                alone = False
                yield from builder.drain()
            yield from builder.finish()
        except BaseException:
            # Whatever happened to the reader, the next task begins with another one.
            del _readers[self._brokers]
            reader.close()
            raise

    @property
    def _brokers(self) -> str:
        return f"{self.topic} {self.kafka.bootstrap} {sorted(self.kafka.properties.items())}"

    def _reader(self) -> RangeReader:
        if self._brokers not in _readers:
            _readers[self._brokers] = RangeReader(self.kafka, self.topic, self.clock)
        return _readers[self._brokers]
