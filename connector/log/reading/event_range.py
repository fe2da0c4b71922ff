"""Ranges of whole events that directly follow each other, as nearly all events of a log do.

`EventSequencer` accepts a range at once, with the same result as accepting its events one by one. `follows` decides
whether two events are in one range; the compiled scan applies the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from connector.log.format.header import FragmentHeader
from connector.log.ids import Kind, Outcome, Seqno

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

EDGES: Final = ("begin", "end")
"""The values of the metadata `snapshot` in the first and last event of an initial load, which change more than rows."""


@dataclass(frozen=True, slots=True)
class EventRange(Generic[R_co]):
    """Whole events of one partition and epoch, each the next of the log after the one before.

    Args:
        partition: the partition of the events.
        first: the seqno of the first event.
        prev_seqno, last_barrier: the fields of the first event's header.
        offsets: the offset of each event's fragment 0, ascending.
        end: the offset after the last fragment.
        header: the header of the last event.
        body: the messages, released with the range.
    """

    partition: int
    first: Seqno
    prev_seqno: Seqno
    last_barrier: Seqno
    offsets: Sequence[int]
    end: int
    header: FragmentHeader
    body: R_co


def is_plain(header: FragmentHeader) -> bool:
    """Return whether a fragment is a whole event that consists of rows alone."""
    return header.fragno == 0 and header.last_frag and rows_alone(header)


def rows_alone(header: FragmentHeader) -> bool:
    """Return whether a fragment changes nothing but rows."""
    return (
        header.kind is Kind.TRANSACTION
        and header.outcome is not Outcome.VOID
        and header.metadata.get("snapshot") not in EDGES
    )


def follows(before: FragmentHeader, after: FragmentHeader) -> bool:
    """Return whether one plain event directly follows another, so that both are in one range."""
    return is_plain(before) and is_plain(after) and linked(before, after)


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


def newest_barrier(header: FragmentHeader) -> Seqno:
    """The barrier that the event after this one must name."""
    return header.seqno if header.barrier else header.last_barrier
