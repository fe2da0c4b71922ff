"""Finds the offset of an event in a partition: by binary search, or by probes from the end backwards.

The seqnos in a partition never decrease from one offset to the next: its events ascend, a given-up event is repeated
with the same seqno, and a marker has the first seqno of its epoch. A binary search therefore finds a seqno, whatever
offsets are missing after Kafka's own markers, aborted transactions and compaction.

Commit times may decrease, because servers' clocks differ. They are assumed to decrease by at most `slack`. Before an
event that is earlier by more than that there are only earlier events, so a binary search works for times, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from connector.log.ids import Seqno

FIRST_PROBE: Final = 16  # offsets; each probe further back is GROWTH times as wide
GROWTH: Final = 8


def backward_probes(low: int, high: int) -> Iterator[range]:
    """The offsets from `low` to before `high` in ever wider ranges, the last range first."""
    width = FIRST_PROBE
    while high > low:
        start = max(low, high - width)
        yield range(start, high)
        width, high = width * GROWTH, start


class HasSeqno(Protocol):
    """The part of a fragment that a search by seqno needs."""

    @property
    def seqno(self) -> Seqno:
        """The seqno of its event; of a marker the first seqno of its epoch."""


class HasCommitTime(HasSeqno, Protocol):
    """The part of a fragment that a search by time needs."""

    @property
    def commit_time(self) -> int | None:
        """The commit time of its event, µs since 1970 UTC; None in markers and before the last fragment."""


H = TypeVar("H", bound=HasSeqno)
T = TypeVar("T", bound=HasCommitTime)


@dataclass(frozen=True, slots=True)
class Probe(Generic[H]):
    """A fragment and its offset."""

    offset: int
    header: H


def first_of(read: Callable[[int], Probe[H] | None], start: int, end: int, seqno: int) -> Probe[H] | None:
    """The first fragment of a partition that does not belong to an earlier event.

    Every finished event of the partition with this seqno or a later one begins there or after it. The fragment found
    may also be the marker before the event, or a given-up attempt at it.

    Args:
        read: returns the first committed fragment at an offset or after it, None if there is none before the end.
        start, end: the first offset, and the one after the last.
        seqno: the seqno to find; an event's seqno plus 1 finds the fragment after that event.

    Returns:
        The fragment; None if all belong to earlier events. It reads at most as often as `end - start` has bits.
    """
    found = None
    while start < end:
        middle = (start + end) // 2
        probe = read(middle)
        if probe is None or probe.offset >= end:
            end = middle
        elif probe.header.seqno < seqno:
            start = probe.offset + 1
        else:
            found, end = probe, middle
    return found


def before_time(read: Callable[[int], Probe[T] | None], start: int, end: int, time: int, slack: int) -> int:
    """An offset at or before the first event of a partition that was committed at a time or later.

    Args:
        read, start, end: as `first_of`.
        time: µs since 1970 UTC.
        slack: µs by which commit times may fall from one event to a later one.

    Returns:
        The offset to read from; `end` if every event is earlier.
    """
    limit = end
    while start < end:
        middle = (start + end) // 2
        probe = read(middle)
        while probe is not None and probe.header.commit_time is None and probe.offset < end:
            probe = first_of(read, probe.offset + 1, limit, probe.header.seqno + 1)  # a long event: the event after it
        if probe is None or probe.offset >= end or probe.header.commit_time is None:
            end = middle
        elif probe.header.commit_time < time - slack:
            start = probe.offset + 1
        else:
            end = middle
    return start
