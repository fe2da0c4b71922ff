"""A portion of one partition, read by itself: so that many can read a log at once, without anyone reading it all first.

A partition is cut at any offsets. An event belongs to the portion that its fragment 0 stands in: who reads a portion
passes over what begins before it, and goes on behind its end until what began in it is finished or given up. So every
event is whole in one portion, however it is cut, and nothing has to be known beforehand of where events begin.

What is checked is what the ledger checks of a partition: fragments without gaps, each event and marker naming the one
before it, markers that count by one and are of this log. Behind its end a portion looks at the next beginning, so the
link between two portions is checked too, and portions that follow each other leave no hole between them.

Whether everything before an event is finished is not asked here: `upto` says so, of which the producer's position
tells that it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NoReturn

from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_EPOCH, NO_SEQNO, Kind, LogId, Seqno
from connector.log.reading.event_range import EventRange
from connector.log.reading.fragment_rules import damaged, interrupted, log_of, unannounced, unexpected, unlinked
from connector.log.writing.fork import Range, meets


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """What of a partition is read.

    Args:
        partition: its number.
        begin, end: offsets; an event is wanted whose fragment 0 stands at one of them, `end` not included.
        after, upto: seqnos; an event is wanted that is above the first and not above the second.
        tail: the partition's last event before `begin`; None: not known, or `begin` is somewhere within an event.
        last: the partition's last event that is not above `upto`: it is finished, and stands before what is not wanted.
        log_id: of the log.
        trapped: events that a later epoch goes on without: passed over.
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

    def wants(self, seqno: Seqno) -> bool:
        """Whether an event is wanted, wherever it stands."""
        return self.after < seqno <= self.upto and not (self.trapped and meets(self.trapped, seqno, seqno))


TAKE: Final = "take"  # a fragment of a wanted event, which is not whole yet
WHOLE: Final = "whole"  # the last one
OTHER: Final = "other"  # nothing that is wanted
GIVE_UP: Final = "give up"  # what was taken of an event is void
DONE: Final = "done"  # nothing that is wanted stands at this message or behind it


class OffsetRangeReader:
    """Tells of each message of a partition, in its order from `begin` on, what it is.

    After an error it is of no use.

    Args:
        topic: for messages.
        bounds: which portion.
    """

    def __init__(self, topic: str, bounds: OffsetRange) -> None:
        self._topic = topic
        self._bounds = bounds
        self._tail = bounds.tail
        self._epoch = NO_EPOCH
        self._foreign = bounds.tail is None  # what is read first may have begun before us
        self._seqno: Seqno = NO_SEQNO  # of the event that is not finished
        self._fragno = 0
        self._rows = 0
        self._wanted = False

    @property
    def finished(self) -> bool:
        """Whether the last event that can be wanted has been read, so that no further message is needed."""
        return self._seqno == NO_SEQNO and self._tail is not None and self._tail >= self._bounds.last

    def take_run(self, run: EventRange[Any]) -> bool:
        """Whether all events of a run are wanted, and simply come next. If not, nothing has changed."""
        bounds = self._bounds
        if (
            self._foreign
            or self._seqno != NO_SEQNO
            or run.header.epoch != self._epoch
            or run.prev_seqno != self._tail
            or run.first <= bounds.after
            or run.header.seqno > bounds.upto
            or run.offsets[-1] >= bounds.end
            or (bounds.trapped and meets(bounds.trapped, run.first, run.header.seqno))
        ):
            return False
        self._tail = run.header.seqno
        return True

    def take(self, header: FragmentHeader, offset: int) -> str:
        """What the next message is.

        Raises:
            LogDamaged: something is missing before it, or it cannot be there by the protocol.
            HistoriesDiffer: the topic holds another log.
        """
        if header.kind is Kind.EPOCH:
            return self._marker(header, offset)
        if self._foreign and header.fragno:
            return self._pass_over(header, offset)
        self._foreign = False
        if wrong := unannounced(header, self._epoch):
            self._damaged(header, offset, wrong)
        self._epoch = header.epoch
        if self._seqno == NO_SEQNO:
            return self._begin(header, offset)
        return self._continue(header, offset)

    def _pass_over(self, header: FragmentHeader, offset: int) -> str:
        """A fragment of what began before this portion."""
        if offset >= self._bounds.end:
            return DONE
        self._epoch = header.epoch
        if header.last_frag:
            self._tail = header.seqno
            self._foreign = False
        return OTHER

    def _begin(self, header: FragmentHeader, offset: int) -> str:
        seqno, bounds = header.seqno, self._bounds
        if header.fragno:
            self._damaged(header, offset, "A fragment is missing before this one")
        self._link(header, offset)
        if offset >= bounds.end or seqno > bounds.upto:
            return DONE
        wanted = bounds.wants(seqno)
        if header.last_frag:
            self._tail = seqno
            return WHOLE if wanted else OTHER
        self._seqno, self._fragno, self._rows, self._wanted = seqno, 1, header.rows, wanted
        return TAKE if wanted else OTHER

    def _continue(self, header: FragmentHeader, offset: int) -> str:
        if wrong := interrupted(header, self._seqno, self._fragno, self._rows, self._tail):
            self._damaged(header, offset, wrong)
        self._fragno += 1
        self._rows = header.rows
        if not header.last_frag:
            return TAKE if self._wanted else OTHER
        self._tail = header.seqno
        self._seqno = NO_SEQNO
        return WHOLE if self._wanted else OTHER

    def _marker(self, header: FragmentHeader, offset: int) -> str:
        """A producer went online: what was unfinished here is given up."""
        log_of(header, self._bounds.log_id, self._at(offset))
        self._link(header, offset)
        if wrong := unexpected(header, self._epoch):
            self._damaged(header, offset, wrong)
        open_, self._seqno = self._seqno != NO_SEQNO and self._wanted, NO_SEQNO
        self._epoch, self._foreign = header.epoch, False
        if offset >= self._bounds.end:
            return DONE
        return GIVE_UP if open_ else OTHER

    def _link(self, header: FragmentHeader, offset: int) -> None:
        if self._tail is None:
            self._tail = header.prev_seqno
        if wrong := unlinked(header, self._tail, NO_SEQNO):
            self._damaged(header, offset, wrong)

    def _damaged(self, header: FragmentHeader, offset: int, message: str) -> NoReturn:
        raise damaged(message, self._at(offset), header)

    def _at(self, offset: int) -> str:
        return f"{self._topic}-{self._bounds.partition}@{offset}"
