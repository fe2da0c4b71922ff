"""The stop conditions of an applier: no event after the named one becomes visible on the target.

    seqno N          event N is the last
    event FILE:POS   the event that ends at that position is the last; if none does, the one before it
    gtid G           that transaction is the last
    time T           the event before the first one that was committed after T is the last
    heartbeat NAME   the next heartbeat of that name is the last

An event is compared before it is applied. Commit times may decrease: the first event after T ends the run.
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
    """Position of an event relative to the stop condition."""

    BEFORE = auto()
    LAST = auto()  # the last event to apply
    BEYOND = auto()  # neither this event nor a later one is applied


@dataclass(frozen=True, slots=True)
class ToSeqno:
    """Event N."""

    seqno: Seqno

    def relation(self, header: FragmentHeader) -> Relation:
        """Compare an event."""
        return _compared(header.seqno, self.seqno)

    def reached(self, position: TargetPosition) -> bool:
        """Return True if the target has applied the last event.

        Raises:
            ConfigError: the target is beyond that event.
        """
        return _reached(_compared(position.seqno, self.seqno), position, f"event {self.seqno}")


@dataclass(frozen=True, slots=True)
class ToEvent:
    """The event that ends at a position of the source's binary log."""

    file: str
    offset: int

    def relation(self, header: FragmentHeader) -> Relation:
        """Compare an event; BEFORE until its last fragment, which has the value, is there."""
        return self._relation(header.event_id) if header.event_id else Relation.BEFORE

    def reached(self, position: TargetPosition) -> bool:
        """Return True if the target has applied the last event.

        Raises:
            ConfigError: the target is beyond that event.
        """
        if not position.event_id:
            return False
        hint = "file numbers differ between servers: after a failover of the source use --to-seqno or --to-gtid"
        return _reached(self._relation(position.event_id), position, f"{self.file}:{self.offset}", hint)

    def _relation(self, text: str) -> Relation:
        found = EventId.parse(text)
        if found.file == self.file:
            return _compared(found.end, self.offset)
        name, number = _numbered(found.file)
        bound, limit = _numbered(self.file)
        return Relation.BEYOND if name == bound and number > limit else Relation.BEFORE


@dataclass(frozen=True, slots=True)
class ToGtid:
    """One transaction by its GTID; in an initial load that contains it, the load's end."""

    gtid: str

    def relation(self, header: FragmentHeader) -> Relation:
        """Compare an event."""
        if header.metadata.get("snapshot") == "end" and (loaded := header.metadata.get("gtid_set")):
            return Relation.LAST if parse_gtids(loaded).contains(self.gtid) else Relation.BEFORE
        if header.gtid == self.gtid:
            return Relation.LAST
        if header.gtid is not None and of_mariadb(self.gtid) and of_mariadb(header.gtid):
            bound, found = DomainGtid.parse(self.gtid), DomainGtid.parse(header.gtid)
            if found.domain == bound.domain and found.number > bound.number:
                return Relation.BEYOND
        return Relation.BEFORE

    def reached(self, position: TargetPosition) -> bool:
        """Return True if the target has the transaction, even if it also has later ones."""
        gtids = position.gtid_set
        if not gtids or of_mariadb(gtids) != of_mariadb(self.gtid):
            return False
        return parse_gtids(gtids).contains(self.gtid)


@dataclass(frozen=True, slots=True)
class ToTime:
    """A time of commit on the source, µs since 1970 UTC."""

    time: int

    def relation(self, header: FragmentHeader) -> Relation:
        """Compare an event; BEFORE until its last fragment, which has the value, is there."""
        return self._relation(header.commit_time or 0)

    def reached(self, position: TargetPosition) -> bool:
        """Return False: only a later event shows that the last one is applied.

        Raises:
            ConfigError: the target is beyond the time.
        """
        return _reached(self._relation(position.commit_time), position, "the time")

    def _relation(self, commit_time: int) -> Relation:
        return Relation.BEYOND if commit_time > self.time else Relation.BEFORE


@dataclass(frozen=True, slots=True)
class ToHeartbeat:
    """The next heartbeat of a name."""

    name: str

    def relation(self, header: FragmentHeader) -> Relation:
        """Compare an event."""
        return Relation.LAST if header.metadata.get(HEARTBEAT) == self.name else Relation.BEFORE

    def reached(self, _: TargetPosition) -> bool:
        """Return False: the target's position does not show which heartbeats it has."""
        return False


StopCondition = ToSeqno | ToEvent | ToGtid | ToTime | ToHeartbeat


def cut(until: StopCondition, messages: Messages, first: int, end: int) -> tuple[int, bool]:
    """Find where a stop condition cuts a range of whole consecutive events.

    Args:
        until: the stop condition.
        messages: the events.
        first, end: the index of the first event, and the one after the last event.

    Returns:
        The index of the first event that is not applied (`end` if all are), and True if the condition is met.
    """
    if isinstance(until, ToSeqno):
        limit = first + max(until.seqno + 1 - messages.header(first).seqno, 0)
        return min(end, limit), limit <= end
    for index in range(first, end):
        if isinstance(until, ToTime):
            if messages.commit_time(index) > until.time:
                return index, True
            continue
        found = until.relation(messages.header(index))
        if found is not Relation.BEFORE:
            return index + (found is Relation.LAST), True
    return end, False


def _compared(found: int, bound: int) -> Relation:
    if found < bound:
        return Relation.BEFORE
    return Relation.LAST if found == bound else Relation.BEYOND


def _reached(relation: Relation, position: TargetPosition, bound: str, hint: str = "") -> bool:
    if relation is Relation.BEYOND:
        raise ConfigError(
            f"the target is beyond {bound} already",
            hint=hint,
            beyond=bound,
            seqno=position.seqno,
            event_id=position.event_id,
        )
    return relation is Relation.LAST


def _numbered(file: str) -> tuple[str, int]:
    """Split a binary log file's name into its base name and its number."""
    return file.rpartition(".")[0], file_number(file)
