"""Buffers the messages of each partition until their turn comes.

All partitions are read at once, so a message of one may wait for a message of another. It waits as a slice of its
batch. Of a large message only the offset waits; the message is fetched when it is applied. What a task has left to the
driver is read when its turn comes, batch by batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from connector.log.compact.scan import Messages, Scanner
from connector.log.compact.segment import Segment, Unread
from connector.spark.stream.parts import Part, begin_of, end_of, partition_of

READ_BYTES: Final = 16 << 20  # bytes that are read at once of what a task has left


class Large(Protocol):
    """Fetches large messages; see `connector.kafka.large_messages`."""

    def fetch(self, partition: int, offset: int) -> pa.RecordBatch:
        """Return one message as a batch of its own."""

    def rest(self) -> None:
        """Release prefetched messages, as no more are needed for now."""


class Ranges(Protocol):
    """Reads ranges of offsets, one after the other; see `connector.kafka.range_reader`."""

    def batches(self, partition: int, begin: int, end: int, *, large: bool = False) -> Generator[pa.RecordBatch]:
        """Yield the messages of a range."""


class PartitionBuffers:
    """The buffers of all partitions, each in the partition's order.

    Args:
        topic: the event topic, for errors.
        large: fetches the messages whose value is null.
        ranges: reads what tasks have left to the driver, and segments of which only a part counts.
        target_id: the target's ID in loads; "": it has none.
        executes_statements: true if the target executes changes that were logged as statements: their events come one
            by one.
    """

    def __init__(
        self, topic: str, large: Large, ranges: Ranges, target_id: str = "", *, executes_statements: bool = False
    ) -> None:
        self.target_id = target_id
        self.executes_statements = executes_statements
        self._scanner = Scanner(topic, target=target_id, statements=executes_statements)
        self._large = large
        self._ranges = ranges
        self._parts: dict[int, deque[Part]] = {}

    def add(self, parts: Iterable[Part]) -> None:
        """Append what was read.

        Args:
            parts: none is empty; a null value is fetched when its turn comes.
        """
        # Spark's tasks read ranges of one partition in parallel: their results come in any order.
        for part in sorted(parts, key=begin_of):
            self._parts.setdefault(partition_of(part), deque()).append(part)

    @property
    def partitions(self) -> Sequence[int]:
        """The partitions with waiting messages, in ascending order."""
        return sorted(partition for partition, parts in self._parts.items() if parts)

    def bytes(self, partition: int) -> int:
        """The bytes of a partition's waiting messages, without large ones."""
        parts = self._parts.get(partition, ())
        return sum(part.nbytes if isinstance(part, pa.RecordBatch) else part.size for part in parts)

    def rest(self) -> None:
        """Release prefetched large messages until the next batch."""
        self._large.rest()

    def read_again(self, segment: Segment) -> None:
        """Replace the segment that comes next of its partition by its messages: it does not count as a whole."""
        unread = Unread(segment.partition, segment.begin, segment.end, segment.messages, segment.size)
        self._parts[segment.partition][0] = unread

    def parts(self, partition: int) -> Sequence[Part]:
        """The parts of a partition that wait, in the order of their offsets."""
        return self._parts[partition]

    def drop(self, segments: Iterable[Segment]) -> None:
        """Remove segments that were accepted, the first of their partitions, in the order of each."""
        for segment in segments:
            self._parts[segment.partition].popleft()

    def poll(self, partition: int) -> Sequence[Messages]:
        """Return the messages that come next of a partition that has some, and no segment before them.

        Returns:
            All before a large one, or the large one. None where they had to be read first.

        Raises:
            LogDamaged: they are not messages of a log, or a large one was deleted.
            BrokerUnavailable: the brokers do not answer.
        """
        parts = self._parts[partition]
        part = parts.popleft()
        if isinstance(part, Segment):
            raise TypeError(f"a segment of partition {partition} comes next")
        if isinstance(part, Unread):
            self._read(part)
            return ()
        in_batch = part.num_rows
        if part["value"].null_count:
            in_batch = pc.index(part["value"].is_null(), True).as_py()
        polled = part.slice(0, in_batch)
        if not in_batch:
            in_batch = 1
            polled = self._large.fetch(partition, part["offset"][0].as_py())
        if in_batch < part.num_rows:
            parts.appendleft(part.slice(in_batch))
        return self._scanner.scan(polled)

    def _read(self, unread: Unread) -> None:
        """Read the next messages of what a task has left, and put them and the rest before what waits."""
        found: list[pa.RecordBatch] = []
        begin, size = unread.begin, 0
        large = not unread.messages  # what no task has read may be large
        with closing(self._ranges.batches(unread.partition, begin, unread.end, large=large)) as batches:
            for batch in batches:
                found.append(batch)
                begin, size = end_of(batch), size + batch.nbytes
                if size >= READ_BYTES:
                    break
            else:
                begin = unread.end
        parts = self._parts[unread.partition]
        if begin < unread.end:
            parts.appendleft(replace(unread, begin=begin))
        parts.extendleft(reversed(found))
