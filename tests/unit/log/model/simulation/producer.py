"""A producer: one generator, whose every `yield` is a moment where it may be paused, killed or fenced."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from connector.errors import ConnectorError, LogDamaged, Unsupported
from connector.kafka.prepared_records import (
    PreparedReader,
    PreparedState,
    attempt_tombstones,
    closing_record,
    message_key,
    tombstones,
)
from connector.log.epochs import fork
from connector.log.epochs.control import ControlState
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.format.shard import partition_of
from connector.log.format.shard_rule import BY_SCHEMA, ShardRule
from connector.log.gtid.mysql import GtidSet
from connector.log.ids import NO_EPOCH, UNKNOWN_SHARD, Kind, LogId, Outcome, Seqno, ShardId
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.event_id import EventId
from connector.log.transaction.layout import TableName
from connector.log.transaction.pending import Pending, Stored
from connector.log.transaction.position import Digest, Finished, PositionRecord, SourcePosition
from connector.log.transaction.xa import PREPARED as XA_PREPARED
from connector.log.writing import online, trapped
from connector.log.writing.fragment import Fragment
from connector.log.writing.progress import Progress
from tests.unit.log.model.simulation.kafka import CONTROL, EVENTS, POSITION, PREPARED, Kafka
from tests.unit.log.model.simulation.source import Source, Sourced

Steps = Generator[str, None, None]


def read_control(kafka: Kafka) -> ControlState:
    """What the control topic says, read to its end."""
    records: dict[Any, Any] = dict(kafka.read_whole(CONTROL))
    epochs = sorted((r for key, r in records.items() if key not in ("log", "partitions")), key=lambda r: r.epoch)
    return ControlState(records.get("log"), records.get("partitions"), tuple(epochs))


def read_position(kafka: Kafka) -> PositionRecord | None:
    """The newest position."""
    records = kafka.read_whole(POSITION)
    return records[-1][1] if records else None


def read_prepared(kafka: Kafka) -> PreparedState:
    """What is kept of prepared transactions."""
    found = PreparedReader()
    for offset, (key, value) in enumerate(kafka.read_whole(PREPARED)):
        found.accept(offset, key, value)
    return found.state(0)


def read_tails(kafka: Kafka) -> dict[int, online.TailFound]:
    """What stands last in every partition."""
    found = {}
    for partition in kafka.topics[EVENTS]:
        values = kafka.read_whole(EVENTS, partition.number)
        newest = values[-1][0] if values else None
        found[partition.number] = online.TailFound.of(newest, start=partition.start, end=partition.end)
    return found


def _encoded(piece: tuple[int, int, int]) -> bytes:
    return b"%d %d %d" % piece


def _decoded(piece: bytes) -> tuple[int, ...]:
    return tuple(map(int, piece.split()))


class Producer:
    """`thl produce`, one run.

    Args:
        log_id: the random identity that it would give to a new log.
        every: a Kafka transaction ends after this many fragments.
        shard_limit: an event of more fragments is #UNKNOWN: its shard is not known in time.
        filters: with another number it makes another event of the same transaction.
        shards_by: the rule of shards that its configuration names.
        accepts: its operator accepts that the source lacks what the log has.
    """

    one_transaction = True  # events and position
    keeps_in_one = True  # what is prepared, and the position that is past it
    takes_away_in_one = True  # what was prepared, and the event that it has become
    confirms = True  # that it is not fenced, before it says that the log is damaged
    begins_with_a_barrier = True  # a version of the partition map
    acknowledges_what_is_committed = True
    acknowledges_whole_events = True
    compares_server = True  # before it acknowledges a place in a file of it

    def __init__(
        self,
        kafka: Kafka,
        source: Source,
        *,
        log_id: str,
        every: int,
        shard_limit: int,
        filters: int = 0,
        shards_by: str = BY_SCHEMA,
        accepts: bool = False,
    ) -> None:
        self._kafka, self._source = kafka, source
        self._log_id = LogId(log_id)
        self._every, self._shard_limit = every, shard_limit
        self._steps = self._run()
        self._epoch = NO_EPOCH
        self.stream_broke = False
        self.idle = False
        self._attempts = 0
        self._strays: list[bytes] = []
        self._filters, self._shards_by, self._accepts = filters, shards_by, accepts
        self.doing = "nothing"
        self.session = 0

    def step(self) -> None:
        """Go on to the next moment where something may happen to it."""
        self.doing = next(self._steps)
        self.idle = self.doing == "idle"

    def _run(self) -> Steps:
        kafka = self._kafka
        self._session = kafka.init_transactions()
        self.session = self._session.number
        yield "fenced the older one"
        control = read_control(kafka)
        yield "read control"
        position = read_position(kafka)
        yield "read position"
        tails = read_tails(kafka)
        yield "read tails"
        with self._still_ours():
            kept = read_prepared(kafka)
        yield "read what is prepared"
        with self._still_ours():
            plan = self._decide(control, position, tails, kept)
        self._pending, self._strays = kept.pending, list(kept.strays)
        yield "decided"
        yield from self._go(plan)
        while True:
            try:
                yield from self._publish()
            except ConnectionResetError:
                yield from self._reconnect()

    @contextmanager
    def _still_ours(self) -> Iterator[None]:
        """What looks like damage may be the work of a newer producer, between two of our reads: that is told first."""
        try:
            yield
        except ConnectorError:
            if self.confirms:
                self._session.confirm()
            raise

    def _decide(
        self,
        control: ControlState,
        position: PositionRecord | None,
        tails: dict[int, online.TailFound],
        kept: PreparedState,
    ) -> online.OnlinePlan:
        facts = self._facts()
        accepted = self._accepted(control, position, facts, kept) if self._accepts else None
        shards = ShardRule(self._shards_by)
        plan = online.decide(control, position, tails, facts, kept.pending.kept, accepted=accepted, rule=shards)
        self._redo(plan)
        return plan

    def _accepted(
        self, control: ControlState, position: PositionRecord | None, facts: online.SourceFound, kept: PreparedState
    ) -> fork.Accepted | None:
        """What is trapped, found in the event topic."""
        gone = GtidSet.parse((position and position.gtid_set) or "") - GtidSet.parse(facts.executed or "")
        if position is None or not gone:
            return None
        trapped = History.of(control, position.last_finished).trapped
        headers = [entry.value[0] for partition in self._kafka.topics[EVENTS] for entry in partition.readable]
        events = [
            fork.LoggedEvent(
                seqno=header.seqno,
                epoch=header.epoch,
                gtid=header.gtid,
                kind=header.kind,
                xa_prepared=header.metadata.get(XA_PREPARED),
            )
            for header in headers
            if header.kind is not Kind.EPOCH
            and header.last_frag
            and header.gtid in gone
            and not fork.overlaps(trapped, header.seqno, header.seqno)
        ]
        return fork.accept(position, str(gone), events, kept.pending)

    def _facts(self) -> online.SourceFound:
        self._session.saw_source = self._source.generation
        return online.SourceFound(
            source_id="db1:3306",
            server_uuid=self._source.server_uuid,
            now=0,
            log_id=self._log_id,
            start=SourcePosition("mysql-bin.000001", 4),
            gtid_set="",
            executed=self._source.executed(),
            files=self._source.files(),
            filters=str(self._filters),
        )

    def _redo(self, plan: online.OnlinePlan) -> None:
        """The source shows the last transaction again."""
        if plan.redo is None:  # also when the last event is trapped, or was made by other filters
            return
        wrote = next(r for r in reversed(plan.control.epochs) if r.first_seqno <= plan.redo.seqno)
        found = self._source.find(plan.redo.gtid or "")
        redone = found and self._finished(found, plan.redo.seqno)
        trapped.check_redo(plan.redo, redone, same_server=wrote.server_uuid == self._source.server_uuid)

    def _go(self, plan: online.OnlinePlan) -> Steps:
        """Write the plan, in one Kafka transaction."""
        session = self._session
        if plan.log is not None:
            session.send(CONTROL, 0, ("log", plan.log))
        if plan.partitions is not None:
            session.send(CONTROL, 0, ("partitions", plan.partitions))
        session.send(CONTROL, 0, (plan.epoch.epoch, plan.epoch))
        yield "wrote the epoch"
        for number, marker in plan.markers.items():
            session.send(EVENTS, number, (marker, None))
            yield f"wrote a marker on {number}"
        session.send(POSITION, 0, ("position", plan.position))
        session.commit()
        self._plan, self._committed, self._epoch = plan, plan.position, plan.epoch.epoch
        self._progress = Progress(plan.position, self._source.server_uuid)
        yield "online"

    def _reconnect(self) -> Steps:
        """The source's stream broke: begin again where Kafka says."""
        self._session.abort()
        yield "aborted"
        self._kafka.tell_all()
        control, position = self._plan.control, self._committed
        with self._still_ours():
            kept = read_prepared(self._kafka)
            online.check_prepared(position, kept.pending.kept)
            plan = online.go_back(control, position, self._facts())
            self._redo(plan)
        self._pending, self._strays = kept.pending, list(kept.strays)
        if position.open is None:
            self._progress = Progress(position, self._source.server_uuid)
        else:
            yield from self._go(plan)

    def _listen(self) -> None:
        if self.stream_broke:
            self.stream_broke = False
            raise ConnectionResetError

    def _publish(self) -> Steps:
        """What follows the position, transaction after transaction: until the stream breaks, the log only grows."""
        position = self._progress.record()
        log, at = self._source.log, self._source.index_after(GtidSet.parse(position.gtid_set or ""))
        self._read, uncommitted = position.resume, 0
        while True:
            self._listen()
            transaction = log[at] if at < len(log) else None
            if transaction is not None:
                self._read, at = transaction.end, at + 1
            if transaction is not None and transaction.xid:
                if uncommitted:
                    yield from self._commit()
                    uncommitted = 0
                yield from self._prepare(transaction) if transaction.does == "prepare" else self._decided(transaction)
                continue
            if transaction is None or transaction.filtered:
                if transaction is not None:
                    self._progress.passed(PositionAdvance(transaction.end, transaction.gtid))
                if uncommitted or transaction is not None:
                    yield from self._commit()
                    uncommitted = 0
                else:
                    yield "idle"
                continue
            uncommitted = yield from self._event(transaction, transaction.pieces, uncommitted)

    def _event(
        self, transaction: Sourced, pieces: Sequence[Any], uncommitted: int, gone: Sequence[Stored] = ()
    ) -> Generator[str, None, int]:
        """The fragments of an event; with the last goes what was kept of it."""
        for fragment, value in self._fragments(transaction, pieces):
            self._listen()
            if fragment.finished and gone and not self.takes_away_in_one:
                self._keep(gone)
                yield from self._commit()
            self._session.send(EVENTS, fragment.partition, value)
            self._progress.accept(fragment)
            if fragment.finished and self.takes_away_in_one:
                self._keep(gone)
            # The timer of an idle tail fires with what was seen last, whatever it is.
            self._progress.passed(PositionAdvance(transaction.end, transaction.gtid))
            uncommitted += 1
            yield f"wrote {fragment.seqno}/{fragment.fragno}"
            if uncommitted >= self._every:
                yield from self._commit()
                uncommitted = 0
        return uncommitted

    def _keep(self, records: Sequence[Stored]) -> None:
        for stored in records:
            self._session.send(PREPARED, 0, (stored.key, stored.value))
            if stored.kept is not None:
                self._progress.keep(stored.kept)

    def _prepare(self, transaction: Sourced) -> Steps:
        """Keep a prepared transaction, in pieces; with the closing record the position is past it."""
        self._keep([Stored(key, None) for key in self._strays])
        self._strays = []
        self._attempts += 1
        attempt = f"{self._epoch}.{self._attempts}"
        pieces = [] if transaction.filtered else transaction.pieces
        for number, piece in enumerate(pieces):
            self._listen()
            key = message_key(attempt, number)
            self._keep([Stored(key, _encoded(piece))])
            self._strays.append(key)  # until it is whole
            yield f"kept {transaction.xid}/{number}"
            if (number + 1) % self._every == 0:
                yield from self._commit()
        self._strays = []
        pending = Pending(
            xid=transaction.xid,
            attempt=attempt,
            batches=len(pieces),
            messages=len(pieces),
            gtid=transaction.gtid,
            start=transaction.start,
            time=0,
        )
        replaced = self._pending.prepare(pending)
        self._keep(attempt_tombstones(replaced.attempt, replaced.messages) if replaced else [])
        passed = PositionAdvance(transaction.end, transaction.gtid)
        if not self.keeps_in_one:
            self._progress.passed(passed)
            yield from self._commit()
        self._keep([closing_record(pending, self._pending.kept)])
        self._progress.passed(passed)
        yield f"kept {transaction.xid}"
        yield from self._commit()

    def _decided(self, transaction: Sourced) -> Steps:
        """Make an event of what is kept, or drop it."""
        pending = self._pending.end(transaction.xid)
        if pending is None:
            raise Unsupported("committed, and never prepared", xid=transaction.xid)
        gone = tombstones(pending, self._pending.kept)
        if transaction.does == "rollback" or not pending.batches:
            self._keep(gone)
            self._progress.passed(PositionAdvance(transaction.end, transaction.gtid))
            yield f"dropped {transaction.xid}"
            yield from self._commit()
            return
        self._kafka.tell_all()  # read back is what is decided: the reader waits
        values = dict(self._kafka.read_whole(PREPARED))
        pieces = [values.get(message_key(pending.attempt, number)) for number in range(pending.messages)]
        with self._still_ours():
            if None in pieces:
                raise LogDamaged("a piece is missing", xid=transaction.xid)
        yield "read back"
        uncommitted = yield from self._event(transaction, [_decoded(piece) for piece in pieces], 0, gone)
        if uncommitted:
            yield from self._commit()

    def _commit(self) -> Steps:
        position = self._progress.record()
        if not self.one_transaction:
            self._session.commit()
            yield "committed the events alone"
        self._session.send(POSITION, 0, ("position", position))
        yield "wrote the position"
        if not self.acknowledges_what_is_committed:
            self._acknowledge(position)
            yield "acknowledged"
        self._session.commit()
        self._committed = position
        yield "committed"
        self._acknowledge(position)

    def _acknowledge(self, position: PositionRecord) -> None:
        """Tell the source, as its semi-synchronous replica, what Kafka has."""
        ours = position.server_uuid == self._source.server_uuid  # not of the server that it has replaced
        if not self.stream_broke and (ours or not self.compares_server):
            seen = position.resume if self.acknowledges_whole_events else self._read
            self._source.acknowledge(self._session.saw_source, seen)

    def _fragments(
        self, transaction: Sourced, pieces: Sequence[Any]
    ) -> Iterator[tuple[Fragment, tuple[FragmentHeader, Any]]]:
        shard = self._shard_of(transaction)
        position = self._progress.record()
        partition = partition_of(shard, len(position.tails))
        seqno = self._progress.next_seqno
        finished = self._finished(transaction, seqno)
        for fragno, piece in enumerate(pieces):
            last = fragno == transaction.size - 1
            header = FragmentHeader(
                seqno=seqno,
                fragno=fragno,
                last_frag=last,
                epoch=self._epoch,
                kind=Kind.TRANSACTION,
                shard=shard,
                prev_seqno=position.tails[partition],
                last_barrier=position.last_barrier,
                rows=fragno + 1,
                source_id="db1:3306",
                server_id=1,
                thread_id=0,
                gtid=transaction.gtid,
                last_committed=0,
                sequence_number=0,
                metadata={XA_PREPARED: transaction.of.gtid} if transaction.of else {},
                event_id=finished.event_id if last else None,
                commit_time=0 if last else None,
                outcome=Outcome.COMMIT if last else None,
            )
            fragment = Fragment(
                partition=partition,
                key=shard.encode(),
                value=b"",
                seqno=seqno,
                fragno=fragno,
                finished=finished if last else None,
                resume=transaction.end if last else None,
                barrier=header.barrier,
                commit_time=None,
            )
            yield fragment, (header, piece)

    def _shard_of(self, transaction: Sourced) -> ShardId:
        partitions, begins = self._plan.control.partitions, self._progress.next_seqno
        if transaction.schema == UNKNOWN_SHARD or transaction.size > self._shard_limit:
            return UNKNOWN_SHARD
        if begins == partitions.since and self.begins_with_a_barrier:
            return UNKNOWN_SHARD
        return partitions.rule.of(TableName(transaction.schema, f"t{transaction.content}"))

    def _finished(self, transaction: Sourced, seqno: Seqno) -> Finished:
        return Finished(
            seqno=seqno,
            epoch=self._epoch,
            event_id=str(EventId(transaction.end.file, transaction.end.offset, 0)),
            gtid=transaction.gtid,
            digest=Digest(transaction.digest.rows + self._filters, transaction.digest.size, transaction.digest.crc32),
            start=transaction.start,
        )
