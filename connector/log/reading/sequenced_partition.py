"""A partition as `EventSequencer` reads it: which event is unfinished, what a newer epoch gave up, where to resume."""

from __future__ import annotations

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
        partition: the one that it is in.
        header: of its newest fragment.
        bodies: those that have not been released.
        finished: its last fragment has come.
        parts: some of its bodies were released.
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
    """One partition.

    Args:
        state: the order of its fragments.
        seen: something of the partition is known: its next offset is a point to resume from.
        limit: events of the state's epoch from this seqno on were given up: a newer epoch gives them again.
        event: the unfinished event, None when there is none or it is passed over.
        starts: of the events that may not be on the target yet, in ranges of events that follow each other: the first
            one's seqno, and for each the offset of its fragment 0.
    """

    state: PartitionState
    seen: bool
    limit: Seqno = NO_LIMIT
    event: UnfinishedEvent[B] | None = None
    starts: deque[tuple[Seqno, Sequence[int]]] = field(default_factory=deque)

    def resumable(self, upto: Seqno) -> int | None:
        """Return the offset to resume from once everything up to and including `upto` is on the target."""
        starts = self.starts
        while starts:
            first, offsets = starts[0]
            if upto < first + len(offsets) - 1:
                return offsets[max(0, upto + 1 - first)]
            starts.popleft()
        return self.state.next_offset if self.seen else None
