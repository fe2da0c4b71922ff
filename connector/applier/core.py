"""The apply core: turns batches of messages into commits on a target.

Promises:
- Each commit takes the target from one seqno to a later one; the target always shows the state of a whole event.
- Memory is bounded by the batch: a larger event goes to the target's staging part by part, and is committed when its
  last fragment has come. `full` names the partitions of which too much waits for events of others.
- The rows of each event are counted, and compared with its headers.

Not promised: anything after an error. The caller closes the target, and starts again from the target's position.
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
from connector.applier.stop_condition import Relation, StopCondition, cut
from connector.clock import Clock
from connector.errors import ConnectorError, TargetDiffers, ValueNotRepresentable
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

COMMIT_ROWS: Final = 200_000  # of a commit, after which it gets no further event
COMMIT_BYTES: Final = 64 << 20  # likewise
RELEASE_BYTES: Final = 32 << 20  # of a batch that go to the sequencer before events are applied
STAGE_BYTES: Final = 4 << 20  # of an unfinished event: fewer are kept in memory instead of staged
WAITING_BYTES: Final = 256 << 20  # of all partitions, beyond which those that are ahead are read no further


@dataclass(slots=True)
class _Open:
    """The next commit, as far as it is collected.

    Args:
        events: whole ones.
        rows: of the unfinished event.
        statements: of the unfinished DDL event, which the target does not have yet.
        staged: whether anything went to the target's staging.
        metadata: the metadata columns' values in the staged rows of the unfinished event.
    """

    events: CommitBatch = field(default_factory=CommitBatch)
    rows: int = 0
    statements: list[Statement] = field(default_factory=list)
    staged: bool = False
    metadata: list[Value] | None = None


class ApplyCore:
    """Applies one log to one claimed target.

    Args:
        target: claimed.
        position: the claim's.
        sequencer: made for that position.
        buffers: hold the messages that are read.
        log_id: the log's.
        gtid_set: the transactions applied at that position; None where the source has no GTIDs.
        topic: the event topic, named in errors.
        clock: for latencies.
        until: the stop condition; no event after it is applied.
        skips: events that are left out.
        columns: the metadata columns that the target was opened with.
    """

    def __init__(
        self,
        target: Target,
        position: TargetPosition,
        sequencer: EventSequencer[Message, Messages],
        buffers: PartitionBuffers,
        *,
        log_id: LogId,
        gtid_set: str | None,
        topic: str,
        clock: Clock,
        until: StopCondition | None = None,
        skips: Skips | None = None,
        columns: MetadataColumns | None = None,
    ) -> None:
        self.position = position
        self._columns = columns
        self._target = target
        self._sequencer = sequencer
        self._log_id = log_id
        self._gtids = None if gtid_set is None else parse_gtids(gtid_set)
        self._topic = topic
        self._clock = clock
        self._until = until
        self._skips = skips or Skips()
        self.done = until is not None and until.reached(position)
        self._buffers = buffers
        self._full: frozenset[int] = frozenset()
        self._compactor = Compactor(topic, columns)
        self._row_parts = RowParts(topic)
        self._consistent = position.consistent
        self._open = _Open()
        self._applied_events = metrics.applied_events.labels(position.service)
        self._applied_rows = metrics.applied_rows.labels(position.service)
        self._applied_seqno = metrics.applied_seqno.labels(position.service)
        self._applied_seqno.set(position.seqno)
        self._latency = metrics.applied_latency.labels(position.service)

    def accept(self, batch: pa.Table) -> None:
        """Apply the events that are whole with this batch.

        Args:
            batch: columns partition, offset, value; a value that is null is fetched when its turn comes.

        Raises:
            ConnectorError: the log is damaged, or the target refuses a change.
        """
        buffers, sequencer = self._buffers, self._sequencer
        buffers.add(batch)
        single: list[Message] = []
        size = 0
        while not self.done and (next_ := [one for one in buffers.partitions if not sequencer.ahead(one)]):
            for partition in next_:
                for messages in buffers.poll(partition):
                    single += self._sequence(messages)
                    size += messages.size
                if size >= RELEASE_BYTES:
                    self._apply_released(single)
                    single, size = [], 0
        self._apply_released(single)
        self._commit()
        buffers.rest()

    def full(self) -> frozenset[int]:
        """The partitions too far ahead of others: so much of them waits that they are read no further for now."""
        share = WAITING_BYTES // self._sequencer.partitions
        self._full = frozenset(
            one
            for one in self._buffers.partitions
            if self._buffers.bytes(one) > share // (2 if one in self._full else 1)
        )
        return self._full

    def _sequence(self, messages: Messages) -> list[Message]:
        """Give messages to the sequencer: as one range of events, where it accepts that.

        Returns:
            The messages that it got one by one.
        """
        single: list[Message] = []
        while len(messages) == 1 or not self._sequencer.accept_range(messages.event_range()):
            message = messages.message(0)
            self._sequencer.accept(message.header, message.partition, message.offset, message)
            single.append(message)
            if len(messages) == 1:
                break
            messages = messages.since(1)
        return single

    def _apply_released(self, messages: Sequence[Message]) -> None:
        """Apply the events that the sequencer releases."""
        for release in self._sequencer.release():
            match release:
                case _ if self.done:
                    return
                case Voided():
                    self._forget()
                case EventRange():
                    self._apply_range(release)
                case _:
                    self._apply_event(release)
        if self._sequencer.waiting:
            # A message that waits for an earlier event of another partition must not keep this batch's memory.
            released = self._sequencer.released
            for message in messages:
                if message.header.seqno > released:
                    message.own()

    def _apply_range(self, events: EventRange[Messages]) -> None:
        """Apply whole events, with as many commits between them as their rows need."""
        messages, compactor = events.body, self._compactor
        at, end = 0, len(messages)
        if self._until is not None:
            end, self.done = cut(self._until, messages, at, end)
        replayed = self.position.head + 1 - events.first  # the index after the last replayed event, if it is here
        while at < end:
            upto = replayed if at < replayed < end else end
            if self._skips and (skip := self._skips.next(Seqno(events.first + at)) - events.first) < upto:
                if skip == at:
                    self._leave_out(_single(messages.message(at)))
                    at += 1
                    continue
                upto = skip
            first, at = at, compactor.add_range(messages, at, upto, COMMIT_ROWS, COMMIT_BYTES)
            self._open.events.add_range(messages, first, at)
            if self._gtids is not None:
                for gtid, count in messages.gtids(first, at):
                    self._gtids.add(gtid, count)
            if self._commit_full or at == replayed:
                self._commit()

    def _apply_event(self, release: Release[Message]) -> None:
        """Apply an event by itself, or its next fragments."""
        header = release.header
        relation = Relation.BEFORE if self._until is None else self._until.relation(header)
        if relation is Relation.BEYOND:
            if not release.first:
                self._forget()
            self.done = True
            return
        if header.seqno in self._skips:
            self._leave_out(release)
            self.done = release.complete and relation is Relation.LAST
            return
        own_commit = header.kind is Kind.DDL or _begins_snapshot(header)
        if release.first and (own_commit or not release.complete):
            self._commit()
        if release.complete and header.outcome is Outcome.VOID:
            if not release.first:
                self._forget()
        else:
            self._collect(release)
        if not release.complete:
            self._stage_unfinished(header)
            return
        self._complete(header)
        self.done = relation is Relation.LAST
        if own_commit or header.seqno == self.position.head or self._commit_full:
            self._commit()

    @property
    def _commit_full(self) -> bool:
        """True when the next commit has enough rows or bytes."""
        return self._compactor.rows >= COMMIT_ROWS or self._compactor.size >= COMMIT_BYTES

    def _collect(self, release: Release[Message]) -> None:
        """Collect the changes of an event's fragments; those of a DDL event go to the target at its end."""
        header = release.header
        ddl = header.kind is Kind.DDL
        held = self._compactor.size + sum(message.size for message in release.bodies)
        for message in release.bodies:
            if not release.complete and held < STAGE_BYTES:
                message.own()  # it is kept for longer than its batch
            whole = self._row_parts.whole(message)
            if whole is None:
                continue
            if ddl:
                self._collect_statements(whole)
            self._open.rows = self._compactor.add(whole, self._open.rows)
        if ddl and release.complete:
            self._define(header)

    def _collect_statements(self, message: Message) -> None:
        """Collect one DDL fragment's statements; rows after them (CREATE TABLE … SELECT) need the tables to exist."""
        collected = self._open
        collected.statements += message.statements(self._topic)
        if message.header.rows > collected.rows:
            self._define(message.header)

    def _define(self, header: FragmentHeader) -> None:
        """Give the target the collected statements."""
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

    def _stage_unfinished(self, header: FragmentHeader) -> None:
        """Stage the changes of an event whose end is still to come, once they are large."""
        if self._compactor.size < STAGE_BYTES:
            return
        self._stage(last=False)
        if self._columns is not None and self._open.metadata is None:
            self._open.metadata = self._columns.values(header)

    def _complete(self, header: FragmentHeader) -> None:
        """Put a whole event into the next commit."""
        if _begins_snapshot(header):
            self._target.begin_snapshot()
            self._open.staged = True
            self._consistent = False
        self._correct_metadata(header)
        self._finish(header)

    def _correct_metadata(self, header: FragmentHeader) -> None:
        """Give the target the metadata columns' values at an event's end, where its staged rows have others."""
        staged, self._open.metadata = self._open.metadata, None
        if self._columns is not None and staged is not None and staged != (values := self._columns.values(header)):
            self._target.set_metadata(values)

    def _finish(self, header: FragmentHeader) -> None:
        """Count a whole event for the next commit."""
        collected = self._open
        collected.events.add(header)
        collected.rows = 0
        if header.metadata.get("snapshot") == "end":
            self._consistent = True
            if found := header.metadata.get("gtid_set"):
                self._gtids = parse_gtids(found)
        elif self._gtids is not None and header.gtid is not None:
            self._gtids.add(header.gtid)

    def _leave_out(self, release: Release[Message]) -> None:
        """Leave an event out, and note the tables that it would have changed; alone in its commit."""
        if release.first:
            self._commit()
        for message in release.bodies:
            self._skips.note(message, self._topic)
        if release.complete:
            with self._located():
                done = release.header.seqno == self._skips.done
                tables = self._target.done_by_hand(self._skips.ddl(release.header)) if done else None
            self._target.leave_out(self._skips.left_out(release.header, tables))
            self._open.staged = True
            self._finish(release.header)
            self._commit()

    def _stage(self, *, last: bool) -> None:
        changes = self._compactor.drain()
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
        """Commit all whole events that were collected; nothing when there are none."""
        collected = self._open
        header = collected.events.last
        if header is None:
            return
        self._stage(last=True)
        if header.seqno == self.position.head:
            self._consistent = True  # every replayed event is applied again
        position = TargetPosition(
            service=self.position.service,
            log_id=self._log_id,
            seqno=header.seqno,
            epoch=header.epoch,
            source_id=header.source_id,
            event_id=header.event_id or "",
            gtid_set=None if self._gtids is None else str(self._gtids),
            offsets={**self.position.offsets, **self._sequencer.resumable(header.seqno)},
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
        self._count(collected.events)

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Add the service, the events and, where an event can be skipped, the option to an error of the target."""
        try:
            yield
        except ConnectorError as error:
            first, last = self.position.seqno + 1, self._open.events.last
            seqno = first if last is None or last.seqno <= first else f"{first}..{last.seqno}"
            error.where = {"service": self.position.service, "seqno": seqno, **error.where}
            if isinstance(error, TargetDiffers | ValueNotRepresentable) and "--done-seqno" not in error.hint:
                skip = "to skip an event, which leaves its tables inconsistent: thl apply --skip-seqno"
                skip += f" {first} --reason …" if seqno == first else f" N --reason … (thl list shows {seqno})"
                error.hint = f"{error.hint}; {skip}" if error.hint else skip
            raise

    def _forget(self) -> None:
        """Drop an unfinished event, which is void; no other event is collected beside it."""
        self._compactor.drain()
        self._row_parts.forget()
        if self._open.staged:
            self._target.discard()
        self._open = _Open()

    def _count(self, events: CommitBatch) -> None:
        now = self._clock.now()
        self._applied_events.inc(events.count)
        self._applied_rows.inc(events.rows)
        self._applied_seqno.set(self.position.seqno)
        for commit_time in events.commit_times():
            self._latency.observe(max(0, now - commit_time) / 1e6)


def _begins_snapshot(header: FragmentHeader) -> bool:
    return header.metadata.get("snapshot") == "begin"


def _single(message: Message) -> Release[Message]:
    """An event of one fragment, out of a range."""
    header = message.header
    return Release(header.seqno, header.epoch, header, [message], first=True, complete=True)
