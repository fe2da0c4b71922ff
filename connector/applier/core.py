"""The apply core: turns batches of messages into commits on a target.

Promises:
- Each commit moves the target from one seqno to a later one. The target shows the state after a whole event; with
  several writers `consistent` is false while it does not.
- Memory is bounded by the batch: a larger event is staged part by part in the target, and committed with its last
  fragment. `full` names partitions with too many bytes that wait for events of other partitions.
- The rows of each event are counted and compared with its headers.

After an error nothing is promised: the caller closes the target and starts again from the target's position.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from connector import failpoints as faults
from connector import metrics
from connector.applier.commit_batch import CommitBatch
from connector.applier.next_position import NextPosition
from connector.applier.open_commit import OpenCommit
from connector.applier.partition_buffers import PartitionBuffers
from connector.applier.quarantine import Quarantine, RefusedCommit
from connector.applier.sequencer_feed import SequencerFeed
from connector.applier.skips import Skips
from connector.applier.stop_condition import Relation, StopCondition, ToSeqno, cut
from connector.clock import Clock
from connector.errors import LogDamaged
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.header import FragmentHeader
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO, Kind, LogId, Outcome, Seqno
from connector.log.reading.event_order import EventOrder
from connector.log.reading.event_range import EventRange
from connector.log.reading.event_sequencer import Release, Voided
from connector.log.transaction.load import LoadEvent
from connector.log.transaction.load import Part as LoadPart
from connector.log.transaction.position import TargetPosition
from connector.relay.event_store import EventStore, NoRelay
from connector.spark.stream.parts import Part
from connector.targets.target import TargetDatabase

LOG: Final = logging.getLogger(__name__)

RELEASE_BYTES: Final = 32 << 20  # bytes of a batch that the sequencer gets before events are applied
WAITING_BYTES: Final = 256 << 20  # waiting bytes of all partitions beyond which partitions that are ahead are paused


class ApplyCore:
    """Applies one log to one claimed target.

    Args:
        target: the claimed target.
        position: the target's position, which the claim returned. Where it has an intent, the core finishes that
            commit, and is done.
        sequencer: the sequencer for that position.
        buffers: the buffers of the messages that were read, which know the target's ID, and whether it executes
            statements.
        log_id: the ID of the log.
        gtid_set: the transactions applied at that position; None if the source has no GTIDs.
        topic: the event topic, for errors.
        clock: the clock for latencies.
        until: the stop condition; no event after it is applied.
        skips: events to leave out.
        columns: the metadata columns that the target was opened with.
        history: the tables that have a history on the target.
        relay: gets everything before the target does; None: there is no relay.
        quarantine: makes commits smaller while it looks for the event that the target refuses.
    """

    def __init__(
        self,
        target: TargetDatabase,
        position: TargetPosition,
        sequencer: EventOrder[Message, Messages | Segment],
        buffers: PartitionBuffers,
        *,
        log_id: LogId,
        gtid_set: str | None,
        topic: str,
        clock: Clock,
        until: StopCondition | None = None,
        skips: Skips | None = None,
        columns: MetadataColumns | None = None,
        history: HistoryTables | None = None,
        relay: EventStore | None = None,
        quarantine: Quarantine | None = None,
    ) -> None:
        self._relay = NoRelay() if relay is None else relay
        self._quarantine = quarantine or Quarantine(clock)
        self._intent_last = NO_SEQNO
        if position.intent is not None:
            # An earlier applier has made this commit in part: it is finished, with all of its events and no others.
            self._intent_last = position.intent.last
            until, skips = ToSeqno(self._intent_last), None
        self._next = NextPosition(position, log_id, gtid_set)
        self._target = target
        self._sequencer = sequencer
        self._topic = topic
        self._clock = clock
        self._until = until
        self._skips = skips or Skips()
        self.done = until is not None and until.reached(position)
        self._buffers = buffers
        self._feed = SequencerFeed(sequencer, buffers, self._needed_one_by_one)
        self._full: frozenset[int] = frozenset()
        self._open = OpenCommit(
            target, position, topic, columns, history, executes_statements=buffers.executes_statements
        )
        self._applied_events = metrics.applied_events.labels(position.service)
        self._applied_rows = metrics.applied_rows.labels(position.service)
        self._applied_seqno = metrics.applied_seqno.labels(position.service)
        self._applied_seqno.set(position.seqno)
        self._latency = metrics.applied_latency.labels(position.service)
        self._excluded_tables = metrics.excluded_tables.labels(position.service)
        self._loading_tables = metrics.loading_tables.labels(position.service)
        self._count_tables()

    @property
    def position(self) -> TargetPosition:
        """The target's position: that of the last commit."""
        return self._next.current

    @property
    def refused(self) -> RefusedCommit | None:
        """The commit that the target has refused."""
        return self._open.refused

    def accept(self, parts: Iterable[Part], *, more: bool = False) -> None:
        """Apply the events that these parts complete.

        Args:
            parts: what was read, none empty; a null value is fetched when its turn comes.
            more: true: what is read next comes at once, so segments may wait for others.

        Raises:
            ConnectorError: the log is damaged, or the target refuses a change.
        """
        self._buffers.add(parts)
        single: list[Message] = []
        size = 0
        while not self.done and (fed := self._feed.next(more=more)) is not None:
            single += fed[0]
            size += fed[1]
            if size >= RELEASE_BYTES:
                self._apply_released(single)
                single, size = [], 0
        self._apply_released(single)
        self._commit()
        self._buffers.rest()

    @property
    def waiting(self) -> bool:
        """True if something that was read waits for events of other partitions."""
        return bool(self._buffers.partitions)

    def full(self) -> frozenset[int]:
        """The partitions to pause, never all: they are too far ahead of others."""
        self._full = self._beyond_share()
        if self._full:
            self.accept(())  # first apply what can be: segments may wait for a partition that would be paused
            self._full = self._beyond_share()
        return self._full

    def _beyond_share(self) -> frozenset[int]:
        """Return the partitions with more waiting bytes than their share; one that was full, than half of it."""
        share = WAITING_BYTES // self._sequencer.partitions
        return frozenset(
            one
            for one in self._buffers.partitions
            if self._buffers.bytes(one) > share // (2 if one in self._full else 1)
        )

    def _needed_one_by_one(self, segment: Segment) -> bool:
        """Return whether something happens within a segment, so that its events are needed one by one."""
        last = segment.header.seqno
        return (
            (self._until is not None and not (isinstance(self._until, ToSeqno) and last <= self._until.seqno))
            or segment.first <= self.position.rewound_from < last
            or segment.first <= self._quarantine.upto
            or (bool(self._skips) and self._skips.next(segment.first) <= last)
        )

    def _apply_released(self, messages: Sequence[Message]) -> None:
        """Apply the events that the sequencer releases."""
        for release in self._sequencer.release():
            match release:
                case _ if self.done:
                    return
                case Voided():
                    self._forget()
                case [EventRange(body=Messages() as body) as events]:
                    self._apply_range(events.first, body)
                case tuple():
                    self._apply_segments([one.body for one in release if isinstance(one.body, Segment)])
                case Release():
                    self._apply_event(release)
        if self._sequencer.waiting:
            # A message that waits for an earlier event of another partition must not keep the whole batch in memory.
            released = self._sequencer.released
            for message in messages:
                if message.header.seqno > released:
                    message.own()

    def _apply_range(self, seqno: Seqno, messages: Messages) -> None:
        """Apply whole events, from this one on, in as many commits as their rows need."""
        at, end = 0, len(messages)
        if self._until is not None:
            end, self.done = cut(self._until, messages, at, end)
        replayed = self.position.rewound_from + 1 - seqno  # the index after the last replayed event, if it is here
        while at < end:
            upto = replayed if at < replayed < end else end
            if self._skips and (skip := self._skips.next(Seqno(seqno + at)) - seqno) < upto:
                if skip == at:
                    self._relay.add_range(messages, at, at + 1)
                    self._leave_out(_single(messages.message(at)))
                    at += 1
                    continue
                upto = skip
            upto = min(upto, at + self._quarantine.room(Seqno(seqno + at), self._open.events.count))
            first, at = at, self._open.add_range(messages, at, upto)
            self._relay.add_range(messages, first, at)
            self._next.add_range(messages, first, at)
            if self._open.full or at == replayed or self._commit_small:
                self._commit()

    def _apply_segments(self, segments: Sequence[Segment]) -> None:
        """Apply whole events that tasks have compacted, all or none."""
        self._relay.add_segments(segments)
        self._open.add_segments(segments)
        self._next.add_segments(segments)
        last = max(segment.header.seqno for segment in segments)
        self.done = isinstance(self._until, ToSeqno) and last == self._until.seqno
        if self._open.full or last == self.position.rewound_from:
            self._commit()

    def _apply_event(self, release: Release[Message]) -> None:
        """Apply a single event, or its next fragments."""
        header = release.header
        relation = Relation.BEFORE if self._until is None else self._until.relation(header)
        if relation is Relation.BEYOND:
            if not release.first:
                self._forget()
            self.done = True
            return
        for message in release.bodies:
            self._relay.add_message(message)
        if header.seqno in self._skips:
            self._leave_out(release)
            self.done = release.complete and relation is Relation.LAST
            return
        load = self._load(header)
        meant = not any(message.for_others for message in release.bodies)
        edge = load if load is not None and load.edge and meant else None
        own_commit = header.kind is Kind.DDL or _begins_snapshot(header) or edge is not None
        if own_commit and header.seqno <= self._intent_last:
            raise self._changed(header.kind.name)
        if release.first and (own_commit or not release.complete or self._open.separates_statements):
            self._commit()
        self._open.unfinished = header.seqno
        if release.complete and header.outcome is Outcome.VOID:
            if not release.first:
                self._forget()
        elif meant:
            self._open.edge = edge
            self._open.collect(release)
        elif load is not None and load.part is LoadPart.BEGIN:
            self._warn_of_other_load(load, header.seqno)
        if not release.complete:
            self._open.stage_unfinished(header)
            return
        self._complete(header)
        self.done = relation is Relation.LAST
        if own_commit or header.seqno == self.position.rewound_from or self._open.full or self._commit_small:
            self._commit()

    def _load(self, header: FragmentHeader) -> LoadEvent | None:
        """The event if it is of a table's load."""
        if header.kind is not Kind.LOAD:
            return None
        try:
            return LoadEvent.of(header.metadata)
        except ValueError as error:
            raise LogDamaged(str(error), service=self.position.service, seqno=header.seqno) from error

    def _warn_of_other_load(self, load: LoadEvent, seqno: Seqno) -> None:
        """Log a table that stays excluded, or not whole, because its load is for other targets."""
        schema = self._target.target_schema
        stays = "excluded" if load.table in schema.excluded else "not whole" if load.table in schema.loading else ""
        if stays:
            fields = {"service": self.position.service, "seqno": seqno, "table": load.table, "load": load.load}
            this = {"target_id": self._buffers.target_id or "none", "load_targets": ",".join(load.targets)}
            LOG.warning(f"a load for other targets begins: here the table stays {stays}", extra=fields | this)

    @property
    def _commit_small(self) -> bool:
        """True if the next commit has as many events as the search for a refused one allows."""
        last = self._open.events.last
        return last is not None and self._quarantine.ends(last.seqno, self._open.events.count)

    def _complete(self, header: FragmentHeader) -> None:
        """Add a whole event to the next commit."""
        if _begins_snapshot(header):
            self._target.begin_snapshot()
            self._open.staged = True
            self._next.begin_snapshot()
        self._finish(header)

    def _finish(self, header: FragmentHeader) -> None:
        """Count a whole event of the next commit."""
        self._open.finish(header)
        self._next.add(header)

    def _leave_out(self, release: Release[Message]) -> None:
        """Leave an event out in a commit of its own, and record the tables that it would have changed."""
        if release.first:
            self._commit()
        for message in release.bodies:
            self._skips.note(message, self._topic)
        if release.complete:
            with self._open.located():
                done = release.header.seqno == self._skips.done
                tables = self._target.done_by_hand(self._skips.ddl(release.header)) if done else None
            self._target.leave_out(self._skips.left_out(release.header, tables))
            self._open.staged = True
            self._finish(release.header)
            self._commit()

    def _commit(self) -> None:
        """Commit all collected whole events; do nothing if there are none."""
        events = self._open.events
        header = events.last
        if header is None or header.seqno < self._intent_last:
            return
        self._relay.sync_soon()  # while the target stages
        self._open.stage(last=True)
        position = self._next.after(header, self._sequencer.resumable(header.seqno))
        self._relay.sync()
        edge = self._open.edge is not None
        faults.point("apply.before_commit")
        if edge:
            faults.point("apply.before_edge")
        with self._open.located():
            self._target.commit(position, events)
        faults.point("apply.after_commit")
        if edge:
            faults.point("apply.after_edge")
        self._relay.committed(position.seqno)
        self._next.current = position
        self._open.begin(position)
        self._count(events)

    def _forget(self) -> None:
        """Drop the unfinished event, which is void; no other event is collected then."""
        if self._open.events.last is not None:
            raise self._changed("void")
        self._relay.void()
        self._open.drop()

    def _changed(self, what: str) -> LogDamaged:
        """The error of a commit that cannot be finished, because its events are not those of its first part."""
        return LogDamaged(
            f"the events of a commit that was made in part are not as they were: {what}",
            hint="load the target again",
            service=self.position.service,
            seqno=f"{self.position.seqno + 1}..{self._intent_last}",
        )

    def _count(self, events: CommitBatch) -> None:
        now = self._clock.now()
        self._applied_events.inc(events.count)
        self._applied_rows.inc(events.rows)
        for name, (rows, size) in events.by_table.items():
            metrics.applied_tables.add(self.position.service, name.schema, name.table, rows, size)
        self._applied_seqno.set(self.position.seqno)
        self._count_tables()
        for commit_time in events.commit_times():
            self._latency.observe(max(0, now - commit_time) / 1e6)

    def _count_tables(self) -> None:
        self._excluded_tables.set(len(self._target.target_schema.excluded))
        self._loading_tables.set(len(self._target.target_schema.loading))


def _begins_snapshot(header: FragmentHeader) -> bool:
    return header.metadata.get("snapshot") == "begin"


def _single(message: Message) -> Release[Message]:
    """Return an event of one fragment from a range."""
    header = message.header
    return Release(header.seqno, header.epoch, header, [message], first=True, complete=True)
