"""A producer: one generator, whose every `yield` is a moment where it may be paused, killed or fenced."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from connector.errors import ConnectorError
from connector.thl import online, trapped
from connector.thl.control import ControlState
from connector.thl.event_id import EventId
from connector.thl.fragment import Fragment
from connector.thl.gtid import GtidSet
from connector.thl.header import FragmentHeader
from connector.thl.piece import Passed
from connector.thl.position import Finished, PositionRecord, SourcePosition
from connector.thl.progress import Progress
from connector.thl.shard import partition_of
from connector.thl.words import NO_EPOCH, UNKNOWN_SHARD, Kind, LogId, Outcome, Seqno, ShardId
from tests.unit.thl.world.kafka import CONTROL, EVENTS, POSITION, Kafka
from tests.unit.thl.world.source import Source, Sourced

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


def read_tails(kafka: Kafka) -> dict[int, online.TailFound]:
    """What stands last in every partition."""
    found = {}
    for partition in kafka.topics[EVENTS]:
        values = kafka.read_whole(EVENTS, partition.number)
        newest = values[-1][0] if values else None
        found[partition.number] = online.TailFound.of(newest, start=partition.start, end=partition.end)
    return found


class Producer:
    """`thl produce`, one run.

    Args:
        log_id: the random identity that it would give to a new log.
        every: a Kafka transaction ends after this many fragments.
        shard_limit: an event of more fragments is #UNKNOWN: its shard is not known in time.
    """

    def __init__(self, kafka: Kafka, source: Source, *, log_id: str, every: int, shard_limit: int) -> None:
        self._kafka, self._source = kafka, source
        self._log_id = LogId(log_id)
        self._every, self._shard_limit = every, shard_limit
        self._steps = self._run()
        self._epoch = NO_EPOCH
        self.one_transaction = True
        self.confirms = True
        self.stream_broke = False
        self.idle = False
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
        plan = self._decide(control, position, tails)
        yield "decided"
        yield from self._go(plan)
        while True:
            try:
                yield from self._publish()
            except ConnectionResetError:
                yield from self._reconnect()

    def _decide(
        self, control: ControlState, position: PositionRecord | None, tails: dict[int, online.TailFound]
    ) -> online.OnlinePlan:
        """What looks like damage may be the work of a newer producer, between two of our reads: that is told first."""
        try:
            plan = online.decide(control, position, tails, self._facts())
            self._redo(plan)
        except ConnectorError:
            if self.confirms:
                self._session.confirm()
            raise
        return plan

    def _facts(self) -> online.SourceFacts:
        self._session.saw_source = self._source.generation
        return online.SourceFacts(
            source_id="db1:3306",
            server_uuid=self._source.server_uuid,
            now=0,
            log_id=self._log_id,
            start=SourcePosition("mysql-bin.000001", 4),
            gtid_set="",
            executed=str(self._source.executed()),
            files=self._source.files(),
        )

    def _redo(self, plan: online.OnlinePlan) -> None:
        """The source shows the last transaction again."""
        if plan.redo is None:
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
        control, position = self._plan.control, self._committed
        plan = online.go_back(control, position, self._facts())
        self._redo(plan)
        if position.open is None:
            self._progress = Progress(position, self._source.server_uuid)
        else:
            yield from self._go(plan)

    def _listen(self) -> None:
        if self.stream_broke:
            self.stream_broke = False
            raise ConnectionResetError

    def _publish(self) -> Steps:
        uncommitted = 0
        while True:
            self._listen()
            transaction = self._source.after(GtidSet.parse(self._progress.record().gtid_set or ""))
            if transaction is None or transaction.filtered:
                if transaction is not None:
                    self._progress.passed(Passed(transaction.end, transaction.gtid))
                if uncommitted or transaction is not None:
                    yield from self._commit()
                    uncommitted = 0
                else:
                    yield "idle"
                continue
            for fragment, value in self._fragments(transaction):
                self._listen()
                self._session.send(EVENTS, fragment.partition, value)
                self._progress.take(fragment)
                # The timer of an idle tail fires with what was seen last, whatever it is.
                self._progress.passed(Passed(transaction.end, transaction.gtid))
                uncommitted += 1
                yield f"wrote {fragment.seqno}/{fragment.fragno}"
                if uncommitted >= self._every:
                    yield from self._commit()
                    uncommitted = 0

    def _commit(self) -> Steps:
        position = self._progress.record()
        if not self.one_transaction:
            self._session.commit()
            yield "committed the events alone"
        self._session.send(POSITION, 0, ("position", position))
        yield "wrote the position"
        self._session.commit()
        self._committed = position
        yield "committed"

    def _fragments(self, transaction: Sourced) -> Iterator[tuple[Fragment, tuple[FragmentHeader, Any]]]:
        shard = ShardId(transaction.schema) if transaction.size <= self._shard_limit else UNKNOWN_SHARD
        position = self._progress.record()
        partition = partition_of(shard, len(position.tails))
        seqno = self._progress.next_seqno
        finished = self._finished(transaction, seqno)
        for fragno, piece in enumerate(transaction.pieces()):
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

    def _finished(self, transaction: Sourced, seqno: Seqno) -> Finished:
        return Finished(
            seqno=seqno,
            epoch=self._epoch,
            event_id=str(EventId(transaction.end.file, transaction.end.offset, 0)),
            gtid=transaction.gtid,
            digest=transaction.digest,
            start=transaction.start,
        )
