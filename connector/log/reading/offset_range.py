"""Reads a range of one partition's offsets by itself, so that many tasks can read a log at once.

A partition is cut at any offsets. An event belongs to the range that has its fragment 0: the reader of a range passes
over events that begin before it, and reads past its end until the event that began in it is finished or given up. So
every event is whole in one range, wherever the cuts are.

The order of fragments is checked as everywhere (`partition_state`). The reader also looks at the first event after the
end of its range, so adjacent ranges leave no hole between them.

The caller knows that everything up to `upto` is finished, from the producer's position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from connector.log.epochs.fork import Range, overlaps
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_SEQNO, Kind, LogId, Seqno
from connector.log.reading.event_range import EventRange
from connector.log.reading.partition_state import PartitionState
from connector.log.reading.sequenced_partition import NO_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """A range of a partition's offsets, and the events of it that are read.

    Args:
        partition: the partition's number.
        begin, end: offsets; an event is read whose fragment 0 is at one of them, `end` not included.
        after, upto: seqnos; an event is read that is above the first and not above the second.
        tail: the partition's last event before `begin`; None: not known, or `begin` is somewhere within an event.
        last: the partition's last event that is not above `upto`; it is finished.
        log_id: the id of the log.
        trapped: events that a later epoch continues without; they are not read.
    """

    partition: int
    begin: int
    end: int
    after: Seqno
    upto: Seqno
    tail: Seqno | None
    last: Seqno
    log_id: LogId
    trapped: tuple[Range, ...] = ()

    def contains(self, seqno: Seqno) -> bool:
        """Return whether an event is read, whatever its offset."""
        return self.after < seqno <= self.upto and not (self.trapped and overlaps(self.trapped, seqno, seqno))


PART: Final = "part"  # a fragment of an event of the range, but not the last one
WHOLE: Final = "whole"  # the last one
OTHER: Final = "other"  # not of the range
GIVE_UP: Final = "give up"  # forget the fragments of the unfinished event
DONE: Final = "done"  # neither this message nor a later one is of the range


class OffsetRangeReader:
    """Classifies each message of a partition, in its order from `begin` on. After an error it is of no use.

    Args:
        topic: named in errors.
        bounds: the range.
    """

    def __init__(self, topic: str, bounds: OffsetRange) -> None:
        self._bounds = bounds
        # Nothing is known of what precedes the range but its tail.
        self._state = PartitionState(topic, bounds.partition, bounds.begin, floor=NO_LIMIT, tail=bounds.tail)
        self._from_within = bounds.tail is None  # the first event may have begun before the range
        self._in_range = False

    @property
    def finished(self) -> bool:
        """True when the last event of the range has been read, so that no further message is needed."""
        tail = self._state.tail
        return not self._state.unfinished and tail is not None and tail >= self._bounds.last

    def accept_range(self, events: EventRange[Any]) -> bool:
        """Accept events that are all read and come next. Returns False, and changes nothing, where they are not."""
        bounds, state = self._bounds, self._state
        if (
            self._from_within
            or state.seqno != NO_SEQNO
            or events.header.epoch != state.epoch
            or events.prev_seqno != state.tail
            or events.first <= bounds.after
            or events.header.seqno > bounds.upto
            or events.end > bounds.end
            or (bounds.trapped and overlaps(bounds.trapped, events.first, events.header.seqno))
        ):
            return False
        state.tail = events.header.seqno
        state.next_offset = events.end
        return True

    def accept(self, header: FragmentHeader, offset: int) -> str:
        """Accept the next message and classify it.

        Raises:
            LogDamaged: something is missing before it, or it cannot be there by the protocol.
            HistoriesDiffer: the topic holds another log.
        """
        state, bounds = self._state, self._bounds
        if header.kind is Kind.EPOCH:
            return self._marker(header, offset)
        state.enter(header, offset)
        if state.fragment(header, offset, from_within=self._from_within):
            self._from_within = header.fragno > 0
            if offset >= bounds.end or header.seqno > bounds.upto:
                return DONE
            self._in_range = not self._from_within and bounds.contains(header.seqno)
        elif self._from_within and offset >= bounds.end:
            return DONE
        if not self._in_range:
            return OTHER
        return WHOLE if header.last_frag else PART

    def _marker(self, header: FragmentHeader, offset: int) -> str:
        """Accept a marker: a producer went online, and the unfinished event is given up."""
        state = self._state
        given_up = state.unfinished and self._in_range
        state.marker(header, offset, self._bounds.log_id)
        state.begin(header.epoch)
        self._from_within = False
        if offset >= self._bounds.end:
            return DONE
        return GIVE_UP if given_up else OTHER
