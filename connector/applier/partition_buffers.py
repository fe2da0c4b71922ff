"""Buffers the messages of each partition until their turn comes.

All partitions are read at once, so a message of one may wait for a message of another. It waits as a slice of its
batch. Of a message that is too large for Spark only the offset waits; the message is fetched when it is applied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from connector.log.compact.scan import Messages, Scanner


class Large(Protocol):
    """Fetches messages that are too large for Spark; see `connector.kafka.large_messages`."""

    def fetch(self, partition: int, offset: int) -> pa.RecordBatch:
        """Return one message as a batch of its own."""

    def rest(self) -> None:
        """Release prefetched messages, as no more are needed for now."""


class PartitionBuffers:
    """The buffers of all partitions, each in the partition's order.

    Args:
        topic: the event topic, for errors.
        large: fetches the messages whose value is null.
    """

    def __init__(self, topic: str, large: Large) -> None:
        self._scanner = Scanner(topic)
        self._large = large
        self._parts: dict[int, deque[pa.RecordBatch]] = {}

    def add(self, batch: pa.Table) -> None:
        """Append a batch.

        Args:
            batch: table with the columns partition, offset, value; each chunk is of one partition; a null value is
                fetched when its turn comes.
        """
        # Spark's tasks read ranges of one partition in parallel: their results come in any order.
        parts = [part for part in batch.to_batches() if part.num_rows]
        for part in sorted(parts, key=lambda part: part["offset"][0].as_py()):
            self._parts.setdefault(part["partition"][0].as_py(), deque()).append(part)

    @property
    def partitions(self) -> Collection[int]:
        """The partitions with waiting messages, in ascending order."""
        return sorted(partition for partition, parts in self._parts.items() if parts)

    def bytes(self, partition: int) -> int:
        """The bytes of a partition's waiting messages, without those that are too large for Spark."""
        return sum(part.nbytes for part in self._parts.get(partition, ()))

    def rest(self) -> None:
        """Release prefetched large messages until the next batch."""
        self._large.rest()

    def poll(self, partition: int) -> Sequence[Messages]:
        """Return the next messages of a partition that has some: all before a large one, or the large one.

        Raises:
            LogDamaged: they are not messages of a log, or a large one was deleted.
            BrokerUnavailable: the brokers do not answer.
        """
        parts = self._parts[partition]
        part = parts.popleft()
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
