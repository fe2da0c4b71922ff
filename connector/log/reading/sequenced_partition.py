"""A partition's state in `EventSequencer`: its unfinished event, its given-up events, the offset to resume from."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from connector.log.format.header import FragmentHeader
from connector.log.ids import Epoch, Seqno
from connector.log.reading.partition_state import PartitionState

B = TypeVar("B")

NO_LIMIT: Final = Seqno(2**63)


@dataclass(slots=True)
class UnfinishedEvent(Generic[B]):
    """An event that is to be released: its fragments so far.

    Args:
        partition: the partition of the event.
        header: the header of its newest fragment.
        bodies: the bodies that are not released yet.
        finished: its last fragment is read.
        parts: some of its bodies are released.
    """

    partition: SequencedPartition[B]
    seqno: Seqno
    epoch: Epoch
    header: FragmentHeader
    bodies: list[B]
    finished: bool = False
    parts: bool = False


@dataclass(slots=True)
class SequencedPartition(Generic[B]):
    """The state of one partition.

    Args:
        state: the order of its fragments.
        seen: the next offset is known, so reading can resume there.
        limit: events of the state's epoch from this seqno on are given up: a newer epoch gives them again.
        event: the unfinished event; None if there is none, or if it is not to be released.
        starts: the events that may not be on the target yet, in ranges: the seqno and the offset of fragment 0 of each.
    """

    state: PartitionState
    seen: bool
    limit: Seqno = NO_LIMIT
    event: UnfinishedEvent[B] | None = None
    starts: deque[tuple[Sequence[int], Sequence[int]]] = field(default_factory=deque)

    def resumable(self, upto: Seqno) -> int | None:
        """Return the offset to resume from once everything up to and including `upto` is on the target."""
        starts = self.starts
        while starts:
            seqnos, offsets = starts[0]
            if upto < seqnos[-1]:
                return offsets[bisect_right(seqnos, upto)]
            starts.popleft()
        return self.state.next_offset if self.seen else None
