"""The state of one partition, and the order in which fragments may come: one state machine for every reader of a log.

    between events --fragment 0--> within an event --last fragment--> between events
    either --an epoch's marker--> between events: what was unfinished is given up

`EventSequencer` (the whole log), `ShardSequencer` (some shards) and `OffsetRangeReader` (a range of one partition) each
keep one for every partition that they read. They differ in what they do with an event: release it in the order of the
log, in the order that barriers demand, or at once. `connector.inspect.thl_events.attempts` does not use it: it lists
damage with everything else, so it demands no order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, LogId, Seqno
from connector.log.reading.fragment_rules import (
    Breach,
    interrupted,
    log_of,
    misplaced,
    unannounced,
    unexpected,
    unlinked,
)
from connector.log.rules import Rule


@dataclass(slots=True)
class PartitionState:
    """One partition as far as it was read. After an error it is of no use.

    Args:
        topic: named in errors.
        partition: the partition's number.
        next_offset: messages before it are not accepted; offsets ascend, with the gaps that Kafka's transactions leave.
        floor: until an event is linked, events up to this seqno may precede what is read.
        tail: the last finished event, None while nothing is known.
        epoch: the epoch of the newest message, NO_EPOCH before the first.
        seqno: the unfinished event, NO_SEQNO if there is none.
        fragno: the unfinished event's next fragment.
        rows: the unfinished event's rows so far.
    """

    topic: str
    partition: int
    next_offset: int
    floor: Seqno
    tail: Seqno | None = None
    epoch: Epoch = NO_EPOCH
    seqno: Seqno = NO_SEQNO
    fragno: int = 0
    rows: int = 0

    @property
    def unfinished(self) -> bool:
        """True within an event."""
        return self.seqno != NO_SEQNO

    def enter(self, header: FragmentHeader, offset: int) -> None:
        """Take over the epoch of a fragment that is not the epoch before: right for the first message alone.

        Raises:
            LogDamaged: the epoch's marker is missing, or an older producer wrote.
        """
        if wrong := unannounced(header, self.epoch):
            self.breach(header, offset, wrong)
        self.epoch = header.epoch

    def fragment(self, header: FragmentHeader, offset: int, *, from_within: bool = False) -> bool:
        """Accept a fragment of the epoch that was entered.

        Args:
            header: the fragment's header.
            offset: the fragment's offset.
            from_within: the first event may be read from one of its later fragments on.

        Returns:
            True for the first fragment that is read of an event.

        Raises:
            LogDamaged: a fragment or an event is missing before it, or the offset was read before.
        """
        if offset < self.next_offset:
            self.damaged(header, offset, Rule.OFFSET_REREAD, next_offset=self.next_offset)
        self.next_offset = offset + 1
        begins = self.seqno == NO_SEQNO
        if begins:
            if header.fragno and (self.tail is not None or not from_within):
                self.damaged(header, offset, Rule.FRAGMENT_MISSING, next_fragno=0)
            if wrong := unlinked(header, self.tail, self.floor):
                self.breach(header, offset, wrong)
            if self.tail is None:
                self.tail = header.prev_seqno
        elif wrong := interrupted(header, self.seqno, self.fragno, self.rows, self.tail):
            self.breach(header, offset, wrong)
        if header.last_frag:
            self.tail = header.seqno
            self.seqno = NO_SEQNO
        else:
            self.seqno = header.seqno
            self.fragno = header.fragno + 1
            self.rows = header.rows
        return begins

    def marker(self, header: FragmentHeader, offset: int, log_id: LogId) -> LogId:
        """Check an epoch's marker; `begin` then gives up what is unfinished.

        Args:
            header: the marker's header.
            offset: the marker's offset.
            log_id: the id of the log that is read, "" while it is not known.

        Returns:
            The marker's log id.

        Raises:
            LogDamaged: an event, or an epoch, is missing before it.
            HistoriesDiffer: it is of another log.
        """
        if offset < self.next_offset:
            self.damaged(header, offset, Rule.OFFSET_REREAD, next_offset=self.next_offset)
        self.next_offset = offset + 1
        found = log_of(header, log_id, self.at(offset))
        if wrong := unlinked(header, self.tail, self.floor):
            self.breach(header, offset, wrong)
        if self.tail is None:
            self.tail = header.prev_seqno
        if wrong := unexpected(header, self.epoch):
            self.breach(header, offset, wrong)
        return found

    def begin(self, epoch: Epoch) -> None:
        """Begin an epoch after its marker."""
        self.epoch = epoch
        self.seqno = NO_SEQNO

    def check_finished(self, header: FragmentHeader, offset: int) -> None:
        """Check that the event that a marker finds unfinished is not one that was finished elsewhere.

        Raises:
            LogDamaged: the epoch begins after that event.
        """
        if NO_SEQNO < self.seqno < header.seqno:
            self.damaged(header, offset, Rule.END_MISSING, unfinished=self.seqno)

    def damaged(self, header: FragmentHeader, offset: int | None, rule: Rule, **where: object) -> NoReturn:
        """Raise the error that names the broken rule and the message."""
        raise misplaced(rule, self.at(offset), header, where)

    def breach(self, header: FragmentHeader, offset: int, breach: Breach) -> None:
        """Raise the error of a breach."""
        self.damaged(header, offset, breach.rule, **breach.where)

    def at(self, offset: int | None) -> str:
        """Return topic-partition@offset, or topic-partition of what has come before."""
        return f"{self.topic}-{self.partition}" + ("" if offset is None else f"@{offset}")
