"""Where an applier is to end: nothing behind that place becomes visible on the target, also of what is at hand.

    seqno N          event N is the last
    event FILE:POS   the event that ends there is the last; where none does, the one before
    gtid G           that transaction is the last
    time T           the event before the first one that was committed after T is the last
    heartbeat NAME   the next heartbeat of that name is the last

Each is asked about an event before it is taken. Commit times of a log need not ascend, so the first event beyond T ends
it, whatever comes behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from connector.errors import ConfigError
from connector.log.compact.scan import Messages
from connector.log.format.header import HEARTBEAT, FragmentHeader
from connector.log.gtid.mariadb import DomainGtid
from connector.log.gtid.source_gtids import of_mariadb, parse_gtids
from connector.log.ids import Seqno
from connector.log.transaction.event_id import EventId
from connector.log.transaction.position import TargetPosition
from connector.log.transaction.source_position import file_number


class Relation(Enum):
    """Of an event, seen from the end that was asked for."""

    BEFORE = auto()
    LAST = auto()  # it is to be applied, and nothing behind it
    BEYOND = auto()  # nothing is to be applied any more, nor this


@dataclass(frozen=True, slots=True)
class ToSeqno:
    """Event N."""

    seqno: Seqno

    def place(self, header: FragmentHeader) -> Relation:
        """Where an event is."""
        return _compared(header.seqno, self.seqno)

    def reached(self, position: TargetPosition) -> bool:
        """Whether a target is there.

        Raises:
            ConfigError: it is beyond it.
        """
        return _reached(_compared(position.seqno, self.seqno), position, f"event {self.seqno}")


@dataclass(frozen=True, slots=True)
class ToEvent:
    """The event that ends at a place of the source's binary log."""

    file: str
    offset: int

    def place(self, header: FragmentHeader) -> Relation:
        """Where an event is; before its last fragment nobody knows."""
        return self._place(header.event_id) if header.event_id else Relation.BEFORE

    def reached(self, position: TargetPosition) -> bool:
        """Whether a target is there.

        Raises:
            ConfigError: it is beyond it.
        """
        if not position.event_id:
            return False
        hint = "another server's files count anew: after a change of the source name a seqno or a GTID"
        return _reached(self._place(position.event_id), position, f"{self.file}:{self.offset}", hint)

    def _place(self, text: str) -> Relation:
        found = EventId.parse(text)
        if found.file == self.file:
            return _compared(found.end, self.offset)
        name, number = _numbered(found.file)
        wanted, limit = _numbered(self.file)
        return Relation.BEYOND if name == wanted and number > limit else Relation.BEFORE


@dataclass(frozen=True, slots=True)
class ToGtid:
    """One transaction by its GTID; in an initial load that contains it, the load's end."""

    gtid: str

    def place(self, header: FragmentHeader) -> Relation:
        """Where an event is."""
        if header.metadata.get("snapshot") == "end" and (loaded := header.metadata.get("gtid_set")):
            return Relation.LAST if parse_gtids(loaded).contains(self.gtid) else Relation.BEFORE
        if header.gtid == self.gtid:
            return Relation.LAST
        if header.gtid is not None and of_mariadb(self.gtid) and of_mariadb(header.gtid):
            wanted, found = DomainGtid.parse(self.gtid), DomainGtid.parse(header.gtid)
            if found.domain == wanted.domain and found.number > wanted.number:
                return Relation.BEYOND
        return Relation.BEFORE

    def reached(self, position: TargetPosition) -> bool:
        """Whether a target has it; which transaction was its last, its position does not tell."""
        gtids = position.gtid_set
        if not gtids or of_mariadb(gtids) != of_mariadb(self.gtid):
            return False
        return parse_gtids(gtids).contains(self.gtid)


@dataclass(frozen=True, slots=True)
class ToTime:
    """A time of commit on the source, µs since 1970 UTC."""

    time: int

    def place(self, header: FragmentHeader) -> Relation:
        """Where an event is; before its last fragment nobody knows."""
        return self._place(header.commit_time or 0)

    def reached(self, position: TargetPosition) -> bool:
        """Whether a target is known to be there: it is not, before something later was seen.

        Raises:
            ConfigError: it is beyond it.
        """
        return _reached(self._place(position.commit_time), position, "the time")

    def _place(self, commit_time: int) -> Relation:
        return Relation.BEYOND if commit_time > self.time else Relation.BEFORE


@dataclass(frozen=True, slots=True)
class ToHeartbeat:
    """The next heartbeat of a name that the target does not have: which it has, its position does not tell."""

    name: str

    def place(self, header: FragmentHeader) -> Relation:
        """Where an event is."""
        return Relation.LAST if header.metadata.get(HEARTBEAT) == self.name else Relation.BEFORE

    def reached(self, _: TargetPosition) -> bool:
        """Whether a target is there: it is still to come."""
        return False


Until = ToSeqno | ToEvent | ToGtid | ToTime | ToHeartbeat


def cut(until: Until, messages: Messages, first: int, end: int) -> tuple[int, bool]:
    """How far whole events that follow each other may be taken.

    Args:
        until: where it is to end.
        messages: the events.
        first, end: which of them.

    Returns:
        Which one is the first that is not to be taken (`end`: none), and whether that is all that is to be taken.
    """
    if isinstance(until, ToSeqno):
        ours = first + max(until.seqno + 1 - messages.header(first).seqno, 0)
        return min(end, ours), ours <= end
    for index in range(first, end):
        if isinstance(until, ToTime):
            if messages.commit_time(index) > until.time:
                return index, True
            continue
        found = until.place(messages.header(index))
        if found is not Relation.BEFORE:
            return index + (found is Relation.LAST), True
    return end, False


def _compared(found: int, wanted: int) -> Relation:
    if found < wanted:
        return Relation.BEFORE
    return Relation.LAST if found == wanted else Relation.BEYOND


def _reached(place: Relation, position: TargetPosition, wanted: str, hint: str = "") -> bool:
    if place is Relation.BEYOND:
        raise ConfigError(
            f"the target is beyond {wanted} already",
            hint=hint,
            seqno=position.seqno,
            event_id=position.event_id,
        )
    return place is Relation.LAST


def _numbered(file: str) -> tuple[str, int]:
    """A binary log file's name without its number, and that."""
    return file.rpartition(".")[0], file_number(file)
