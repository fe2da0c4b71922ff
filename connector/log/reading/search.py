"""Finds the offset of an event in a partition by binary search.

From one offset to the next the numbers of a partition never fall: its events ascend, what was given up is given again
under the same number, and a marker bears the first number that its epoch will give. So a number is looked for by
binary search, whatever offsets Kafka's own markers, aborted transactions and compaction have removed.

Commit times may fall: servers have clocks. They are assumed to fall by no more than a `slack`; then an event that is
earlier by more than that has only earlier ones before it, and binary search works for times, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from connector.log.ids import Seqno


class HasSeqno(Protocol):
    """The part of a fragment that a search by seqno needs."""

    @property
    def seqno(self) -> Seqno:
        """Of its event; of a marker the first that its epoch gives."""


class HasCommitTime(HasSeqno, Protocol):
    """The part of a fragment that a search by time needs."""

    @property
    def commit_time(self) -> int | None:
        """Its event's, µs since 1970 UTC; None where it does not tell: on markers, and before the last fragment."""


H = TypeVar("H", bound=HasSeqno)
T = TypeVar("T", bound=HasCommitTime)


@dataclass(frozen=True, slots=True)
class Probe(Generic[H]):
    """A fragment and its offset."""

    offset: int
    header: H


def first_of(read: Callable[[int], Probe[H] | None], start: int, end: int, seqno: int) -> Probe[H] | None:
    """The first fragment in a partition that is not of an earlier event.

    Every finished event of the partition with this seqno or a greater one stands there or behind it, whole; what is
    met may also be the marker before it, or what was given up of it.

    Args:
        read: the first committed fragment at an offset or behind it, None where there is none before the end.
        start, end: the first offset, and the one after the last.
        seqno: what is looked for; one more than an event's finds where that event is over.

    Returns:
        None: all there are, are of earlier events. As many reads as `end - start` has bits, at most.
    """
    found = None
    while start < end:
        middle = (start + end) // 2
        met = read(middle)
        if met is None or met.offset >= end:
            end = middle
        elif met.header.seqno < seqno:
            start = met.offset + 1
        else:
            found, end = met, middle
    return found


def before_time(read: Callable[[int], Probe[T] | None], start: int, end: int, time: int, slack: int) -> int:
    """An offset that is not behind the first event of a partition that was committed at a time or later.

    Args:
        read, start, end: as `first_of`.
        time: µs since 1970 UTC.
        slack: µs by which commit times may fall from one event to a later one.

    Returns:
        Where to begin to read; `end` when every event is earlier.
    """
    limit = end
    while start < end:
        middle = (start + end) // 2
        met = read(middle)
        while met is not None and met.header.commit_time is None and met.offset < end:
            met = first_of(read, met.offset + 1, limit, met.header.seqno + 1)  # a long event: the one behind it
        if met is None or met.offset >= end or met.header.commit_time is None:
            end = middle
        elif met.header.commit_time < time - slack:
            start = met.offset + 1
        else:
            end = middle
    return start
