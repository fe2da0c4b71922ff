"""Ranges of whole events of one partition, as nearly all events of a log are.

`EventSequencer` accepts a range at once where its events directly follow each other, or several ranges of different
partitions whose events do so together, with the same result as accepting the events one by one. `linked` decides
whether two events are in one range, `interleaved` whether they are in one with gaps that other partitions fill; the
compiled scan (`connector.log.compact.scan`) applies the same rules: change both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from connector.log.format.header import FragmentHeader
from connector.log.ids import Kind, Outcome, Seqno
from connector.log.transaction.load import PART, PASSED_OVER, Part, for_others

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

EDGES: Final = ("begin", "end")
"""The values of the metadata `snapshot` in the first and last event of an initial load, which change more than rows."""


@dataclass(frozen=True, slots=True)
class EventRange(Generic[R_co]):
    """Whole events of one partition and epoch, each the partition's next after the one before.

    Args:
        partition: the partition of the events.
        seqnos: the seqno of each event, ascending.
        prev_seqno, last_barrier: the fields of the first event's header.
        offsets: the offset of each event's fragment 0, ascending.
        end: the offset after the last fragment.
        header: the header of the last event.
        body: the messages, released with the range.
    """

    partition: int
    seqnos: Sequence[int]
    prev_seqno: Seqno
    last_barrier: Seqno
    offsets: Sequence[int]
    end: int
    header: FragmentHeader
    body: R_co

    @property
    def first(self) -> Seqno:
        """The seqno of the first event."""
        return Seqno(self.seqnos[0])


def is_plain(header: FragmentHeader, target: str | None = None) -> bool:
    """Return whether a fragment is a whole event that consists of rows alone; arguments as those of `rows_alone`."""
    return header.fragno == 0 and header.last_frag and rows_alone(header, target)


def rows_alone(header: FragmentHeader, target: str | None = None) -> bool:
    """Return whether a fragment changes nothing but rows on a target, or nothing at all.

    Args:
        header: the fragment's.
        target: the target's ID, as that of `for_others`.
    """
    if header.kind not in (Kind.TRANSACTION, Kind.LOAD) or header.outcome is Outcome.VOID:
        return False
    part = header.metadata.get(PART)
    if header.kind is Kind.LOAD and for_others(header.metadata, target):
        return part in PASSED_OVER
    return header.metadata.get("snapshot") not in EDGES and part in (None, Part.ROWS)


def linked(before: FragmentHeader, after: FragmentHeader) -> bool:
    """Return whether two events are directly one after the other, in one epoch.

    Args:
        before: the last fragment of the first.
        after: the first fragment of the second.
    """
    return (
        after.epoch == before.epoch
        and after.seqno == before.seqno + 1
        and after.prev_seqno == before.seqno
        and after.last_barrier == newest_barrier(before)
    )


def interleaved(before: FragmentHeader, after: FragmentHeader, interval: int) -> bool:
    """Return whether an event is its partition's next after another, and both may be in one range.

    Between them may be events of other partitions, so a range must end where those can end theirs, too: before a
    barrier, which may have rows of their tables, and where an interval of seqnos ends.

    Args:
        before: the last fragment of the first; no barrier.
        after: the first fragment of the second.
        interval: the length of an interval, which begin at its multiples.
    """
    return (
        after.epoch == before.epoch
        and after.seqno > before.seqno
        and after.prev_seqno == before.seqno
        and after.last_barrier == before.last_barrier
        and not after.barrier
        and after.seqno // interval == before.seqno // interval
    )


def joins(first: FragmentHeader, before: FragmentHeader, after: FragmentHeader, interval: int) -> bool:
    """Return whether an event continues a range.

    A range that begins with a barrier holds nothing but events that directly follow each other: no other partition has
    any between them.

    Args:
        first: the last fragment of the range's first event.
        before: the last fragment of its last one.
        after: the first fragment of the event.
        interval: see `interleaved`; 0: all events of the log are in this partition.
    """
    return linked(before, after) if not interval or first.barrier else interleaved(before, after, interval)


def newest_barrier(header: FragmentHeader) -> Seqno:
    """The barrier that the event after this one must name."""
    return header.seqno if header.barrier else header.last_barrier
