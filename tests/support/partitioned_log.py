"""The partitions of a log as a test writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.fragments import encoded, marker


@dataclass
class PartitionedLog:
    """A log of several partitions, begun by a producer that has gone online.

    Args:
        count: the number of partitions.
        log_id: the ID of the log.

    Attributes:
        values: the messages of each partition.
        firsts: the first seqno of each epoch.
        last: the last finished event.
        barrier: the last barrier.
        tails: the last finished event of each partition.
    """

    count: int
    log_id: str = "f" * 32
    values: list[list[bytes]] = field(init=False)
    firsts: list[int] = field(default_factory=list, init=False)
    last: int = field(default=-1, init=False)
    barrier: int = field(default=-1, init=False)
    tails: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.values = [[] for _ in range(self.count)]
        self.tails = [-1] * self.count
        self.epoch()

    def epoch(self) -> None:
        """A producer goes online."""
        self.firsts.append(self.last + 1)
        for partition, tail in enumerate(self.tails):
            fields = marker(len(self.firsts), self.last + 1, self.last, log_id=self.log_id, tail=tail)
            self.add(partition, fields | {"last_barrier": self.barrier})

    def add(self, partition: int, fields: dict[str, Any]) -> None:
        """Append a message to a partition."""
        self.values[partition].append(encoded(fields))
