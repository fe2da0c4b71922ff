"""One partition as a reader meets it: which event is unfinished, which was the last, where to start again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, Seqno

B = TypeVar("B")

NO_LIMIT: Final = Seqno(2**63)


@dataclass(slots=True)
class UnfinishedEvent(Generic[B]):
    """An event that is wanted: its fragments so far.

    Args:
        chain: its partition.
        header: of its newest fragment.
        bodies: those that have not been released.
        parts: whether some were.
    """

    chain: PartitionState[B]
    seqno: Seqno
    epoch: Epoch
    header: FragmentHeader
    bodies: list[B]
    finished: bool = False
    parts: bool = False


@dataclass(slots=True)
class PartitionState(Generic[B]):
    """What a reader knows of one partition.

    Args:
        partition: its number.
        next_offset: nothing before it is expected any more.
        seen: whether anything of the partition is known: `next_offset` is a place to start again.
        epoch: of the newest thing read, NO_EPOCH before the first.
        limit: an event of `epoch` with this seqno or a greater one was given up: a newer epoch gives it again.
        tail: the last finished event, None while nothing was read.
        seqno: of the unfinished event, NO_SEQNO when there is none.
        fragno: the unfinished event's next.
        rows: the unfinished event's so far.
        event: the unfinished event, None when there is none or it is passed over.
        starts: of the wanted events that may not be on the target yet, in runs that follow each other: the first
            one's seqno, and each one's offset of its fragment 0.
    """

    partition: int
    next_offset: int
    seen: bool
    epoch: Epoch = NO_EPOCH
    limit: Seqno = NO_LIMIT
    tail: Seqno | None = None
    seqno: Seqno = NO_SEQNO
    fragno: int = 0
    rows: int = 0
    event: UnfinishedEvent[B] | None = None
    starts: deque[tuple[Seqno, Sequence[int]]] = field(default_factory=deque)

    def close(self) -> None:
        """There is no unfinished event any more."""
        self.seqno = NO_SEQNO
        self.event = None

    def resumable(self, upto: Seqno) -> int | None:
        """The offset to start again from once everything up to and including `upto` is on the target."""
        starts = self.starts
        while starts:
            first, offsets = starts[0]
            if upto < first + len(offsets) - 1:
                return offsets[max(0, upto + 1 - first)]
            starts.popleft()
        return self.next_offset if self.seen else None
