"""A relay: the events that an applier of one host is about to apply, on its disk. Its power may fail at any moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

from connector.errors import HistoriesDiffer, LogDamaged
from connector.log.epochs.fork import overlaps
from connector.log.epochs.history import History
from connector.log.ids import LogId
from connector.log.transaction.position import TargetPosition
from tests.unit.log.model.simulation.target import Applied


class Record(NamedTuple):
    """An event, with the one before it in the log as its applier saw it: between them others may be trapped."""

    log_id: LogId
    before: int
    event: Applied
    event_id: str
    whole: bool = True  # its checksum is right


@dataclass
class Relay:
    """A folder of one host.

    Args:
        records: in the order in which they were written.
        synced: how many are on the disk for certain.
    """

    syncs: ClassVar[bool] = True  # before anything is committed
    keeps_what_is_open: ClassVar[bool] = True  # when it deletes
    cuts_what_was_not_committed: ClassVar[bool] = True
    compares_log: ClassVar[bool] = True
    compares_epoch: ClassVar[bool] = True
    checks_what_it_reads: ClassVar[bool] = True
    needs_all: ClassVar[bool] = True

    records: list[Record] = field(default_factory=list)
    synced: int = 0

    def begin(self, position: TargetPosition, history: History) -> None:
        """Continue after a target's position: what follows it is written again, but what an intent needs."""
        if any(record.log_id != history.log_id for record in self.records):
            raise LogDamaged("the relay is of another log", found=self.records[0].log_id)
        known = max(position.seqno, position.rewound_from)
        if position.intent is not None:
            known = max(known, position.intent.last)
        if self._begins_after(position.seqno):
            known = position.seqno
        seqnos = (record.event.seqno for record in self.records)
        trapped = (seqno for seqno in seqnos if overlaps(history.trapped, seqno, seqno))
        known = min(known, min(trapped, default=known + 1) - 1)
        if self.cuts_what_was_not_committed:
            self.records = [record for record in self.records if record.whole and record.event.seqno <= known]
            self.synced = min(self.synced, len(self.records))

    def _begins_after(self, seqno: int) -> bool:
        """Whether the last records without a gap between them begin after the event that follows this one."""
        before = None
        for record in reversed(self.records):
            if before is not None and record.event.seqno != before:
                break
            before = record.before
        return before is not None and before > seqno

    def write(self, records: Sequence[Record]) -> None:
        """Write events that it does not have, in the order of the log."""
        last = self.records[-1].event.seqno if self.records else -1
        self.records += [record for record in records if record.event.seqno > last]

    def sync(self) -> None:
        if self.syncs:
            self.synced = len(self.records)

    def delete(self, upto: int, position: TargetPosition) -> str:
        """Retention, or `thl purge`: delete events up to this one that no commit needs any more."""
        if self.keeps_what_is_open:
            upto = min(upto, position.seqno)
        gone = sum(record.event.seqno <= upto for record in self.records)
        self.records = [record for record in self.records if record.event.seqno > upto]
        self.synced = max(0, self.synced - gone)
        return ""  # which is no harm

    def lose_power(self, torn: int) -> None:
        """What was not synced is lost, but some of it; of the next record a part may be there."""
        kept = min(len(self.records), self.synced + torn)
        self.records, torn_record = self.records[:kept], self.records[kept : kept + 1]
        self.records += [record._replace(whole=False) for record in torn_record]
        self.synced = min(self.synced, len(self.records))

    def damage(self, harm: str, back: int) -> None:
        """A record changes or is lost, so many from the end; or the relay of another log is put in its place."""
        if not harm or not self.records:
            return
        number = max(0, len(self.records) - back)
        if harm == "cut":
            del self.records[number]
            self.synced = min(self.synced, len(self.records))
        for place in range(len(self.records)):
            record = self.records[place]
            other = replace(record.event, pieces=tuple((999, table, key) for _, table, key in record.event.pieces))
            if harm == "flip" and place == number:
                self.records[place] = record._replace(event=other, whole=False)
            elif harm == "foreign":
                self.records[place] = record._replace(event=other, log_id=LogId("f" * 32))
            elif harm == "other epoch":
                self.records[place] = record._replace(event=replace(other, epoch=record.event.epoch + 1))

    def needed(self, position: TargetPosition) -> list[Record]:
        """The events of a target's intent.

        Raises:
            LogDamaged, HistoriesDiffer: it lacks one, or is of another log.
        """
        intent = position.intent
        assert intent is not None
        found: list[Record] = []
        last = position.seqno
        for record in self.records:
            if not record.whole and self.checks_what_it_reads:
                break
            if not intent.first <= record.event.seqno <= intent.last:
                continue
            if self.compares_log and record.log_id != intent.log_id:
                raise HistoriesDiffer("the relay is of another log", relay=record.log_id)
            if record.before != last and self.needs_all:
                raise LogDamaged("the relay lacks events", seqno=f"{last + 1}..{intent.last}")
            found.append(record)
            last = record.event.seqno
        if self.needs_all and last != intent.last:
            raise LogDamaged("the relay lacks events", seqno=f"{last + 1}..{intent.last}")
        if self.compares_epoch and found and found[-1].event.epoch != intent.epoch:
            raise HistoriesDiffer("the relay has other events", seqno=intent.last)
        if not found:
            raise LogDamaged("the relay lacks events", seqno=f"{intent.first}..{intent.last}")
        return found
