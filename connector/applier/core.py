"""The apply core: batches of messages in, commits on a target out. The same code wherever it runs.

Promises:
- The target goes from one seqno to a later one in one commit, and what it shows is always that of a whole seqno.
- Memory is bounded by the batch: an event that is larger goes to the target's staging part by part and is
  committed when its last fragment has come; what waits for another partition's event is told by `full`.
- Rows are counted, event by event, against what the headers say.

Not promised: anything after an error. Whoever catches one closes the target and begins anew from what it says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from connector import failpoints as faults
from connector import metrics
from connector.applier.commit_batch import CommitBatch
from connector.applier.partition_buffers import PartitionBuffers
from connector.applier.skips import Skips
from connector.applier.stop_condition import Relation, Until, cut
from connector.clock import Clock
from connector.errors import ConnectorError
from connector.log.compact.compact import Compactor
from connector.log.compact.metadata_columns import MetadataColumns, Value
from connector.log.compact.net_changes import Ddl, once_more
from connector.log.compact.scan import Messages
from connector.log.format.header import FragmentHeader
from connector.log.format.message import Message
from connector.log.format.row_parts import RowParts
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.ids import NO_SEQNO, Kind, LogId, Outcome, Seqno
from connector.log.reading.event_range import EventRange
from connector.log.reading.event_sequencer import EventSequencer, Release, Voided
from connector.log.transaction.batch import Statement
from connector.log.transaction.position import TargetPosition
from connector.targets.target import Target

COMMIT_ROWS: Final = 200_000  # a commit takes no further event once it has so many
COMMIT_BYTES: Final = 64 << 20  # or so many bytes
RELEASE_BYTES: Final = 32 << 20  # so much of a batch is taken before anything of it is applied
STAGE_BYTES: Final = 4 << 20  # less of an unfinished event is kept here instead of staged
BACKLOG_BYTES: Final = 256 << 20  # of all partitions, beyond which those that are ahead are read no further


@dataclass(slots=True)
class _Open:
    """What is collected for the next commit.

    Args:
        events: whole ones.
        rows: of the event that is being taken.
        statements: of the DDL event that is being taken, not yet given to the target.
        staged: whether anything went to the target's staging.
        stamp: what the transaction's columns are in what is staged of the event that is being taken.
    """

    events: CommitBatch = field(default_factory=CommitBatch)
    rows: int = 0
    statements: list[Statement] = field(default_factory=list)
    staged: bool = False
    stamp: list[Value] | None = None


class ApplyCore:
    """Applies one log to one claimed target.

    Args:
        target: claimed.
        position: what the claim returned.
        ledger: made for that position.
        backlog: of the messages that are read.
        log_id: the log's.
        gtid_set: what counts as applied at that position; None where the source has none.
        topic: the event topic, named in errors.
        clock: for latencies.
        until: nothing behind this is applied.
        skips: events that are left out.
        columns: those of the transaction that the target was opened with.
    """

    def __init__(
        self,
        target: Target,
        position: TargetPosition,
        ledger: EventSequencer[Message, Messages],
        backlog: PartitionBuffers,
        *,
        log_id: LogId,
        gtid_set: str | None,
        topic: str,
        clock: Clock,
        until: Until | None = None,
        skips: Skips | None = None,
        columns: MetadataColumns | None = None,
    ) -> None:
        self.position = position
        self._columns = columns
        self._target = target
        self._ledger = ledger
        self._log_id = log_id
        self._gtids = None if gtid_set is None else parse_gtids(gtid_set)
        self._topic = topic
        self._clock = clock
        self._until = until
        self._skips = skips or Skips()
        self.done = until is not None and until.reached(position)
        self._backlog = backlog
        self._full: frozenset[int] = frozenset()
        self._collapse = Compactor(topic, columns)
        self._chunks = RowParts(topic)
        self._consistent = position.consistent
        self._open = _Open()
        self._applied_events = metrics.applied_events.labels(position.service)
        self._applied_rows = metrics.applied_rows.labels(position.service)
        self._applied_seqno = metrics.applied_seqno.labels(position.service)
        self._applied_seqno.set(position.seqno)
        self._latency = metrics.applied_latency.labels(position.service)

    def take(self, batch: pa.Table) -> None:
        """Apply what has become whole with this batch.

        Args:
            batch: columns partition, offset, value; a value that is null is fetched when its turn comes.

        Raises:
            ConnectorError: whatever the log or the target is found to be.
        """
        backlog, ledger = self._backlog, self._ledger
        backlog.add(batch)
        waiting: list[Message] = []
        size = 0
        while not self.done and (next_ := [one for one in backlog.partitions if not ledger.ahead(one)]):
            for partition in next_:
                for messages in backlog.take(partition):
                    waiting += self._noted(messages)
                    size += messages.size
                if size >= RELEASE_BYTES:
                    self._released(waiting)
                    waiting, size = [], 0
        self._released(waiting)
        self._commit()
        backlog.rest()

    def full(self) -> frozenset[int]:
        """Partitions that are too far ahead of others: of these so much waits that no more is to be read for now."""
        share = BACKLOG_BYTES // self._ledger.partitions
        self._full = frozenset(
            one
            for one in self._backlog.partitions
            if self._backlog.bytes(one) > share // (2 if one in self._full else 1)
        )
        return self._full

    def _noted(self, messages: Messages) -> list[Message]:
        """Tell the ledger of messages: a run at once, where it can take one.

        Returns:
            Those that it was told of one by one.
        """
        alone: list[Message] = []
        while len(messages) == 1 or not self._ledger.take_run(messages.run()):
            message = messages.message(0)
            self._ledger.take(message.header, message.partition, message.offset, message)
            alone.append(message)
            if len(messages) == 1:
                break
            messages = messages.since(1)
        return alone

    def _released(self, messages: Sequence[Message]) -> None:
        """Take what the ledger lets go."""
        for release in self._ledger.release():
            match release:
                case _ if self.done:
                    return
                case Voided():
                    self._forget()
                case EventRange():
                    self._run(release)
                case _:
                    self._one(release)
        if self._ledger.waiting:
            # What waits for an earlier event on another partition must not keep this batch's memory.
            released = self._ledger.released
            for message in messages:
                if message.header.seqno > released:
                    message.own()

    def _run(self, run: EventRange[Messages]) -> None:
        """Take whole events; with as many commits between them as their rows need."""
        messages, collapse = run.body, self._collapse
        at, end = 0, len(messages)
        if self._until is not None:
            end, self.done = cut(self._until, messages, at, end)
        head = self.position.head + 1 - run.first  # where what was applied before ends, if it does among these
        while at < end:
            upto = head if at < head < end else end
            if self._skips and (skip := self._skips.next(Seqno(run.first + at)) - run.first) < upto:
                if skip == at:
                    self._leave_out(_alone(messages.message(at)))
                    at += 1
                    continue
                upto = skip
            first, at = at, collapse.add_run(messages, at, upto, COMMIT_ROWS, COMMIT_BYTES)
            self._open.events.add_run(messages, first, at)
            if self._gtids is not None:
                for gtid, count in messages.gtids(first, at):
                    self._gtids.add(gtid, count)
            if collapse.rows >= COMMIT_ROWS or collapse.size >= COMMIT_BYTES or at == head:
                self._commit()

    def _one(self, release: Release[Message]) -> None:
        header = release.header
        place = Relation.BEFORE if self._until is None else self._until.place(header)
        if place is Relation.BEYOND:
            if not release.first:
                self._forget()
            self.done = True
            return
        if header.seqno in self._skips:
            self._leave_out(release)
            self.done = release.complete and place is Relation.LAST
            return
        ddl = header.kind is Kind.DDL
        if release.first and (ddl or not release.complete):
            self._commit()
        begins = header.metadata.get("snapshot") == "begin"
        if begins and release.first:
            self._commit()
        if release.complete and header.outcome is Outcome.VOID:
            if not release.first:
                self._forget()
        else:
            held = self._collapse.size + sum(message.size for message in release.bodies)
            for message in release.bodies:
                if not release.complete and held < STAGE_BYTES:
                    message.own()  # it is kept for longer than its batch
                whole = self._chunks.whole(message)
                if whole is None:
                    continue
                if ddl:
                    self._statements(whole)
                self._open.rows = self._collapse.add(whole, self._open.rows)
            if ddl and release.complete:
                self._define(header)
        if not release.complete:
            if self._collapse.size >= STAGE_BYTES:
                self._stage(last=False)
                if self._columns is not None and self._open.stamp is None:
                    self._open.stamp = self._columns.values(header)
            return
        if begins:
            self._target.begin_snapshot()
            self._open.staged = True
            self._consistent = False
        self._stamp(header)
        self._finished(header)
        self.done = place is Relation.LAST
        alone = ddl or begins or header.seqno == self.position.head
        if alone or self._collapse.rows >= COMMIT_ROWS or self._collapse.size >= COMMIT_BYTES:
            self._commit()

    def _stamp(self, header: FragmentHeader) -> None:
        """Tell the target what the end of an event says of its transaction, where rows went there without."""
        staged, self._open.stamp = self._open.stamp, None
        if self._columns is not None and staged is not None and staged != (values := self._columns.values(header)):
            self._target.stamp(values)

    def _leave_out(self, release: Release[Message]) -> None:
        """Take nothing of an event but what it would have touched; alone in its commit."""
        if release.first:
            self._commit()
        for message in release.bodies:
            self._skips.look(message, self._topic)
        if release.complete:
            with self._located():
                done = release.header.seqno == self._skips.done
                tables = self._target.done_by_hand(self._skips.ddl(release.header)) if done else None
            self._target.leave_out(self._skips.left_out(release.header, tables))
            self._open.staged = True
            self._finished(release.header)
            self._commit()

    def _statements(self, message: Message) -> None:
        """Take one DDL fragment's statements. Rows after them (CREATE TABLE … SELECT) need the tables to be there."""
        collected = self._open
        collected.statements += message.statements(self._topic)
        if message.header.rows > collected.rows:
            self._define(message.header)

    def _define(self, header: FragmentHeader) -> None:
        """Give the target the statements that were collected."""
        collected = self._open
        if not collected.statements:
            return
        faults.point("apply.before_stage")
        self._target.ddl(
            Ddl(seqno=header.seqno, statements=tuple(collected.statements), commit_time=header.commit_time or 0)
        )
        faults.point("apply.after_stage")
        collected.statements = []
        collected.staged = True

    def _finished(self, header: FragmentHeader) -> None:
        """An event is whole: the next commit covers it."""
        collected = self._open
        collected.events.add(header)
        collected.rows = 0
        if header.metadata.get("snapshot") == "end":
            self._consistent = True
            if found := header.metadata.get("gtid_set"):
                self._gtids = parse_gtids(found)
        elif self._gtids is not None and header.gtid is not None:
            self._gtids.add(header.gtid)

    def _stage(self, *, last: bool) -> None:
        changes = self._collapse.take()
        if not changes:
            return
        if self.position.head != NO_SEQNO:
            changes = [once_more(net) for net in changes]
        faults.point("apply.before_stage")
        with self._located():
            self._target.stage(changes, last=last)
        faults.point("apply.after_stage")
        self._open.staged = True

    def _commit(self) -> None:
        """Make all whole events that were collected visible; nothing when there are none."""
        collected = self._open
        header = collected.events.last
        if header is None:
            return
        self._stage(last=True)
        if header.seqno == self.position.head:
            self._consistent = True  # it is again what it was when it was taken back
        position = TargetPosition(
            service=self.position.service,
            log_id=self._log_id,
            seqno=header.seqno,
            epoch=header.epoch,
            source_id=header.source_id,
            event_id=header.event_id or "",
            gtid_set=None if self._gtids is None else str(self._gtids),
            offsets={**self.position.offsets, **self._ledger.resumable(header.seqno)},
            consistent=self._consistent,
            commit_time=header.commit_time or 0,
            head=self.position.head if header.seqno < self.position.head else NO_SEQNO,
        )
        faults.point("apply.before_commit")
        with self._located():
            self._target.commit(position, collected.events)
        faults.point("apply.after_commit")
        self.position = position
        self._open = _Open()
        self._told(collected.events)

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Say of an error of the target whose and which events it is about."""
        try:
            yield
        except ConnectorError as error:
            first, last = self.position.seqno + 1, self._open.events.last
            seqno = first if last is None or last.seqno <= first else f"{first}..{last.seqno}"
            error.where = {"service": self.position.service, "seqno": seqno, **error.where}
            raise

    def _forget(self) -> None:
        """What was taken of an unfinished event is void; nothing else is collected while it is being taken."""
        self._collapse.take()
        self._chunks.forget()
        if self._open.staged:
            self._target.discard()
        self._open = _Open()

    def _told(self, events: CommitBatch) -> None:
        now = self._clock.now()
        self._applied_events.inc(events.count)
        self._applied_rows.inc(events.rows)
        self._applied_seqno.set(self.position.seqno)
        for commit_time in events.commit_times():
            self._latency.observe(max(0, now - commit_time) / 1e6)


def _alone(message: Message) -> Release[Message]:
    """An event of one fragment, out of a run."""
    header = message.header
    return Release(header.seqno, header.epoch, header, [message], first=True, complete=True)
