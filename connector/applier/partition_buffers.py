"""What was read of each partition and has not been looked at: each message waits here for its turn.

Partitions are read at once, and what one gives may have to wait for what another has not given yet. It waits as it
came, a slice of a batch; and of a message that Spark did not carry only the place waits, so a large one is in memory
when it is applied and not before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from connector.log.compact.scan import Messages, Scanner


class Large(Protocol):
    """What fetches messages that Spark does not carry; see `connector.kafka.large_messages`."""

    def fetch(self, partition: int, offset: int) -> pa.RecordBatch:
        """One message as a batch of its own."""

    def rest(self) -> None:
        """No more are wanted for a while."""


class PartitionBuffers:
    """Parts of batches, in each partition's order.

    Args:
        topic: the event topic, named in errors.
        large: fetches the messages whose value is null.
    """

    def __init__(self, topic: str, large: Large) -> None:
        self._scanner = Scanner(topic)
        self._large = large
        self._parts: dict[int, deque[pa.RecordBatch]] = {}

    def add(self, batch: pa.Table) -> None:
        """Put a batch behind what is there.

        Args:
            batch: columns partition, offset, value, each chunk of one partition; a value that is null is fetched when
                its turn comes.
        """
        # Spark's tasks read ranges of the same partition in parallel: theirs come in any order.
        parts = [part for part in batch.to_batches() if part.num_rows]
        for part in sorted(parts, key=lambda part: part["offset"][0].as_py()):
            self._parts.setdefault(part["partition"][0].as_py(), deque()).append(part)

    @property
    def partitions(self) -> Collection[int]:
        """Of which something waits, in ascending order."""
        return sorted(partition for partition, parts in self._parts.items() if parts)

    def bytes(self, partition: int) -> int:
        """Of one partition's parts, without what Spark did not carry."""
        return sum(part.nbytes for part in self._parts.get(partition, ()))

    def rest(self) -> None:
        """Nothing is taken until more is added."""
        self._large.rest()

    def take(self, partition: int) -> Sequence[Messages]:
        """The next messages of a partition of which something waits: all up to a large one, or that one.

        Raises:
            LogDamaged: they are no messages of the log; or a large one is gone.
            BrokerUnavailable: the brokers do not answer.
        """
        parts = self._parts[partition]
        part = parts.popleft()
        carried = part.num_rows
        if part["value"].null_count:
            carried = pc.index(part["value"].is_null(), True).as_py()
        taken = part.slice(0, carried)
        if not carried:
            carried = 1
            taken = self._large.fetch(partition, part["offset"][0].as_py())
        if carried < part.num_rows:
            parts.appendleft(part.slice(carried))
        return self._scanner.scan(taken)
