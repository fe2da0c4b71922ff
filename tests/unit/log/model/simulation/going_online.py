"""A producer compares log and source, and decides how to go on; the real code of `connector.log.writing` does."""

from __future__ import annotations

from collections.abc import Generator

from connector.kafka.prepared_records import PreparedState
from connector.log.epochs import fork
from connector.log.epochs.control import ControlState
from connector.log.epochs.history import History
from connector.log.format.shard_rule import ShardRule
from connector.log.gtid.mysql import GtidSet
from connector.log.ids import Kind
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.log.transaction.xa import PREPARED as XA_PREPARED
from connector.log.writing import online, trapped
from tests.unit.log.model.simulation.event_fragments import Settings, finished_of
from tests.unit.log.model.simulation.kafka import CONTROL, EVENTS, POSITION, Kafka, Session
from tests.unit.log.model.simulation.source import Source

Steps = Generator[str, None, None]


class GoingOnline:
    """What a producer does before it publishes.

    Args:
        kafka: has the log.
        session: of the producer.
        source: as it is now.
        settings: of the producer.
    """

    def __init__(self, kafka: Kafka, session: Session, source: Source, settings: Settings) -> None:
        self._kafka, self._session, self._source, self._settings = kafka, session, source, settings

    def decide(
        self,
        control: ControlState,
        position: PositionRecord | None,
        tails: dict[int, online.TailFound],
        kept: PreparedState,
    ) -> online.OnlinePlan:
        """Decide with which plan to begin."""
        facts = self._facts()
        accepted = self._accepted(control, position, facts, kept) if self._settings.accepts else None
        shards = ShardRule(self._settings.shards_by)
        plan = online.decide(control, position, tails, facts, kept.pending.kept, accepted=accepted, rule=shards)
        self._redo(plan)
        return plan

    def go_back(self, control: ControlState, position: PositionRecord, kept: PreparedState) -> online.OnlinePlan:
        """Decide with which plan to go on in the same epoch, when the source's stream broke."""
        online.check_prepared(position, kept.pending.kept)
        plan = online.go_back(control, position, self._facts())
        self._redo(plan)
        return plan

    def write(self, plan: online.OnlinePlan) -> Steps:
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
            log_id=self._settings.log_id,
            start=SourcePosition("mysql-bin.000001", 4),
            gtid_set="",
            executed=self._source.executed(),
            files=self._source.files(),
            filters=str(self._settings.filters),
        )

    def _redo(self, plan: online.OnlinePlan) -> None:
        """The source shows the last transaction again."""
        if plan.redo is None:  # also when the last event is trapped, or was made by other filters
            return
        wrote = next(r for r in reversed(plan.control.epochs) if r.first_seqno <= plan.redo.seqno)
        found = self._source.find(plan.redo.gtid or "")
        redone = found and finished_of(found, plan.redo.seqno, wrote.epoch, self._settings)
        trapped.check_redo(plan.redo, redone, same_server=wrote.server_uuid == self._source.server_uuid)
