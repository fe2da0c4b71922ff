"""Segments: whole events of a partition, one after the other in it, reduced to their net changes.

Spark's tasks make segments, each of what it reads; the applier's driver decides whether one counts. Compaction cannot
be undone: where only a part of a segment counts, the driver reads its messages again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from connector.log.compact.net_changes import AppliedEvent, NetChanges
from connector.log.format.header import FragmentHeader
from connector.log.gtid.gtid_runs import GtidRun
from connector.log.ids import Seqno
from connector.log.reading.event_range import EventRange

COMMIT_ROWS: Final = 200_000  # rows after which a segment, or a commit, gets no further event
COMMIT_BYTES: Final = 64 << 20  # likewise
COMMIT_TABLES: Final = 400  # likewise; a target may lock several objects for each


class Records(Protocol):
    """The messages of a segment as records of the relay (`connector.relay.record`), which follow each other."""

    def __len__(self) -> int:
        """The number of bytes."""

    def part(self, begin: int, end: int) -> Records:
        """Return some of these bytes."""

    def pieces(self, buffer: memoryview) -> Iterator[memoryview]:
        """Yield the bytes in pieces, each in the buffer until the next.

        Raises:
            OSError: they cannot be read.
        """

    def mapped(self) -> memoryview:
        """Return the bytes, for access to many small parts, while something refers to the records.

        Raises:
            OSError: they cannot be read.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Whole events of rows alone, of one partition and epoch, each the partition's next after the one before.

    Args:
        partition: the partition of the events.
        seqnos: the seqno of each event: a `range`, or `array('q')` where other partitions have events between.
        prev_seqno, last_barrier: the fields of the first event's header.
        offsets: `array('q')`, the offset of each event's fragment 0.
        end: the offset after the last fragment.
        header: the header of the last event's last fragment.
        messages: the number of messages.
        size: the bytes of the messages.
        rows: the number of row changes.
        gtids: the GTIDs of the events.
        commit_times: `array('q')`, the commit time of each event in µs since 1970 UTC; 0 where one is not known.
        changes: the net changes, in the order in which to apply them.
        events: each event, if it was asked for.
        records: the messages as records of the relay, in their order; None if they were not asked for.
        record_ends: `array('q')`, where in `records` each event ends.
    """

    partition: int
    seqnos: Sequence[int]
    prev_seqno: Seqno
    last_barrier: Seqno
    offsets: array[int]
    end: int
    header: FragmentHeader
    messages: int
    size: int
    rows: int
    gtids: Sequence[GtidRun]
    commit_times: array[int]
    changes: Sequence[NetChanges]
    events: Sequence[AppliedEvent] = ()
    records: Records | None = None
    record_ends: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        """The number of events."""
        return len(self.offsets)

    @property
    def first(self) -> Seqno:
        """The seqno of the first event."""
        return Seqno(self.seqnos[0])

    @property
    def begin(self) -> int:
        """The offset of the first message."""
        return self.offsets[0]

    def event_range(self) -> EventRange[Segment]:
        """The events as a range for `EventSequencer`."""
        return EventRange(
            self.partition, self.seqnos, self.prev_seqno, self.last_barrier, self.offsets, self.end, self.header, self
        )


@dataclass(frozen=True, slots=True)
class Unread:
    """Offsets of a partition whose messages a task has left to the driver.

    Args:
        partition: the partition.
        begin, end: the offsets, `end` not included.
        messages: the number of messages.
        size: the bytes of the messages.
    """

    partition: int
    begin: int
    end: int
    messages: int
    size: int
