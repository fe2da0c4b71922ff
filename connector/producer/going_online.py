"""Going online, in the order that makes dying anywhere harmless: ARCHITECTURE.md, "A log has one writer".

1. Fence the older producer. 2. Read control, position and the partitions' tails to their ends. 3. Check that they
belong together (`thl.online.decide`). 4. Read the last transaction from the source again and compare. 5. Write epoch,
markers and position in one Kafka transaction. 6. Go on from there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Event
from typing import Final

from connector import failpoints as faults
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import HistoriesDiffer, LogDamaged, PreflightError
from connector.kafka.log_reader import LogReader
from connector.kafka.prepared_records import PreparedState
from connector.kafka.topics import Topics
from connector.kafka.transactions import Transactions
from connector.kafka.trapped import trapped_events
from connector.log.format.partition_map import ShardRule
from connector.log.gtid.source_gtids import lacking
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.definition import Definitions, Item, Redefined
from connector.log.transaction.event_id import EventId
from connector.log.transaction.position import Finished, PositionRecord
from connector.log.transaction.xa import Decided, Prepared
from connector.log.writing.control import ControlState, EpochRecord
from connector.log.writing.fork import Accepted, accept, ranges_text
from connector.log.writing.history import History
from connector.log.writing.online import OnlinePlan, SourceFacts, check_redo, comparable, decide, incomparable
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering, Sharding
from connector.producer.ownership import EpochOwnership
from connector.producer.prepared_xa import PreparedTransactions, redone
from connector.producer.publish.publisher import Publisher
from connector.producer.publish.replica_gate import ReplicaGate
from connector.producer.sources.source import Source, Stream
from connector.retrying import Stopped
from connector.schema import Framing, fragment_schema

LOG: Final = logging.getLogger(__name__)
REDO_PATIENCE: Final = 120.0  # seconds without anything from a source that has the transaction

Items = list[Item]


class OnlineProducer:
    """A producer that has gone online: what it holds, and what it knows.

    Args:
        config: everything.
        source: where from.
        clock: the time.
        stop: set when we are to stop.
        begun: what this process has begun; added to. Going online again must fence nobody newer, and make no new log.
        framing: how messages begin.
        accept_trapped: go on where the source lacks transactions that the log has.
        accept_partial: patterns of tables that may begin to be captured although they hold rows.
        hold: what has to be elsewhere before it is published.
    """

    def __init__(
        self,
        config: Config,
        source: Source,
        clock: Clock,
        stop: Event,
        begun: EpochOwnership,
        *,
        framing: Framing,
        accept_trapped: bool = False,
        accept_partial: Sequence[str] = (),
        hold: ReplicaGate | None = None,
    ) -> None:
        self._hold = hold
        self._config = config
        self._source = source
        self._clock = clock
        self._stop = stop
        self._begun = begun
        self._framing = framing
        self._accept_trapped = accept_trapped
        self._accept_partial = accept_partial
        self._transactions: Transactions | None = None
        self.stream: Stream | None = None
        self.ahead: Items = []  # read beyond the redone transaction, to be published first
        self.tables: Definitions | None = None  # the source's, behind what was put
        self.control: ControlState
        self.control_end = 0  # where the control topic ended before we wrote to it
        self.encoder: Encoder
        self.prepared: PreparedTransactions
        self._publisher: Publisher | None = None
        self._kept = PreparedState()

    def go(self) -> None:
        """All six steps.

        Raises:
            Fenced: a newer producer runs.
            LogDamaged, UnsafeTopic: Kafka's side is not in order; nothing was written.
            HistoriesDiffer, PreflightError: the source's side is not; nothing was written.
            BrokerUnavailable, SourceUnavailable: may pass.
        """
        self._source.check(load=False)
        self._begun.prove(self._config)
        # From here on as the topics are, whatever was to be when they were made.
        config = self._config = self._config.model_copy(update={"kafka": Topics(self._config).ensure()})
        self._transactions = Transactions(config, self._clock)
        self._transactions.open()
        faults.point("produce.after_init")
        try:
            plan = self._plan()
        except (LogDamaged, HistoriesDiffer, PreflightError):
            # What a newer producer does meanwhile looks from here like damage, or like another history.
            self._transactions.confirm()
            raise
        self._publisher = Publisher(
            config, self._transactions, self._clock, faults.point, self._hold, created=self._source.created
        )
        self.begin(plan)
        self.prepared = PreparedTransactions(config, self.encoder, self._publisher, plan.epoch.epoch, self._kept)
        LOG.info(
            "online",
            extra={
                "service": config.service,
                "log_id": plan.control.log.log_id if plan.control.log else "",
                "epoch": plan.epoch.epoch,
                "next_seqno": plan.epoch.first_seqno,
                "resume": plan.position.resume,
                "snapshot": plan.position.snapshot,
            },
        )

    def _plan(self) -> OnlinePlan:
        """Steps 2 to 4."""
        config = self._config
        with LogReader(config) as reader:
            self.control_end = reader.control_end()
            control, position, kept = reader.control(), reader.position(), reader.prepared()
            tails = {partition: reader.tail(partition) for partition in range(config.kafka.partitions)}
        faults.point("produce.after_read")
        facts = self._source.facts(new=position is None)
        if config.publish.wait_for and facts.executed is None:
            raise PreflightError(
                "publish.wait_for needs GTIDs, and the source gives none: nobody can tell what a replica has of it",
                hint="SET PERSIST enforce_gtid_consistency = ON; and gtid_mode step by step to ON; or leave it out",
            )
        if position is not None and control.epochs and not position.snapshot:
            self._check_widened(control.epochs[-1], facts)
        accepted = self._accepted(control, position, facts, kept) if self._accept_trapped else None
        rule = ShardRule(config.publish.shard_by, tuple((one.name, one.pattern) for one in config.publish.shards))
        plan = decide(control, position, tails, facts, kept.pending.kept, accepted=accepted, rule=rule)
        if plan.partitions and not plan.new:
            fields = {"service": config.service, "rule": rule, "since": plan.partitions.since}
            LOG.warning("shards are made by another rule: who reads some of them has to be told", extra=fields)
        self.tables, self._kept = plan.control.tables, kept
        self.encoder = Encoder(
            service=config.service,
            source_id=facts.source_id,
            partitions=config.kafka.partitions,
            limits=Limits(
                fragment=min(config.publish.fragment_bytes, config.kafka.max_message_bytes // 2),
                shard=config.publish.shard_bytes,
                message=config.kafka.max_message_bytes,
            ),
            framing=self._framing,
            sharding=_sharding(config, plan),
        )
        if plan.position.snapshot:
            self._source.check(load=True)
        else:
            self.reopen(plan.position, plan.control, facts.server_uuid)
        return plan

    def _check_widened(self, last: EpochRecord, facts: SourceFacts) -> None:
        """Other filters than those of the log's last epoch may want what was not captured by these."""
        same = last.capture == facts.capture if last.capture is not None else last.filters in (None, facts.filters)
        if not same:
            self._source.check_widened(last.capture, self._accept_partial)

    def _accepted(
        self, control: ControlState, position: PositionRecord | None, facts: SourceFacts, kept: PreparedState
    ) -> Accepted | None:
        """The trapped transactions, where there are any and the log may go on without them."""
        if position is None or position.gtid_set is None or facts.executed is None:
            return None
        missing = lacking(position.gtid_set, facts.executed)
        if not missing:
            return None
        events = trapped_events(self._config, control, position, facts.executed, fragment_schema())
        accepted = accept(position, str(missing), events, kept.pending)
        LOG.warning(
            "going on without trapped transactions: targets that have applied them are refused",
            extra={
                "service": self._config.service,
                "trapped": accepted.forked.trapped,
                "trapped_events": ranges_text(accepted.forked.events),
                "source": facts.source_id,
            },
        )
        return accepted

    @property
    def publisher(self) -> Publisher:
        """Publishes; there once `go` has returned."""
        if self._publisher is None:
            raise RuntimeError("the producer is not online")
        return self._publisher

    def begin(self, plan: OnlinePlan) -> None:
        """Write a plan and number on from it."""
        markers = [self.encoder.marker(partition, header) for partition, header in plan.markers.items()]
        self._begun.epochs.append(plan.epoch)
        self.publisher.online(plan, markers)
        self._begun.log_id = plan.control.log.log_id if plan.control.log else None
        self.control = plan.control
        self.number(plan.position)

    def number(self, position: PositionRecord) -> None:
        """Number on from a position, in the newest epoch."""
        self.encoder.begin(_numbering(position, self.control.epochs[-1].epoch))

    def reopen(self, position: PositionRecord, control: ControlState, server_uuid: str) -> None:
        """Open the stream at a position, after the source has shown that it still has the last transaction.

        Numbering has to begin anew afterwards.

        Args:
            position: committed in Kafka.
            control: with the epochs up to that position's.
            server_uuid: the source's.

        Raises:
            HistoriesDiffer: it has another one.
        """
        self.close_stream()
        finished = comparable(control, position)
        if why := incomparable(control, position):
            LOG.warning(
                f"the log's last event is not compared with the source: {why}",
                extra={"service": self._config.service, "seqno": position.last_finished},
            )
        if finished is None or _loaded(finished):
            self.stream = self._source.after(position, self.tables)
        elif not self._source.holds(finished):
            LOG.warning(
                "the source has purged the log's last transaction: not compared",
                extra={"service": self._config.service, "seqno": finished.seqno, "event_id": finished.event_id},
            )
            self.stream = self._source.after(position, self.tables)
        else:
            self.stream = self._source.redo(position, self.tables)
            written = History.of(control, position.last_finished).covering(finished.seqno)
            self._compare(self.stream, position, finished, same_server=written.server_uuid == server_uuid)
            if position.gtid_set is None or position.server_uuid == server_uuid:
                # By places, what we passed over since would be shown again; an XA COMMIT must not be met twice.
                self.close_stream()
                self.stream = self._source.after(position, self.tables)

    def _compare(self, stream: Stream, position: PositionRecord, finished: Finished, *, same_server: bool) -> None:
        before = Numbering(
            epoch=finished.epoch,
            next_seqno=finished.seqno,
            tails=position.tails,
            last_barrier=position.last_barrier,
        )
        self.encoder.begin(before)
        give_up = self._clock.monotonic() + REDO_PATIENCE
        while self._clock.monotonic() < give_up and not stream.ended:
            if self._stop.is_set():
                raise Stopped
            items = stream.read(0.2)
            for index, item in enumerate(items):
                if isinstance(item, PositionAdvance):
                    if item.gtid is not None and item.gtid == finished.gtid:
                        check_redo(finished, None)
                    continue
                if isinstance(item, Redefined):
                    continue
                give_up = self._clock.monotonic() + REDO_PATIENCE
                if isinstance(item, Decided):
                    check_redo(finished, redone(finished, item), same_server=same_server)
                    self.ahead = items[index + 1 :]
                    return
                if isinstance(item, Prepared) and item.piece.ending is not None and not item.one_phase:
                    check_redo(finished, None)
                fragments = self.encoder.take(item.piece if isinstance(item, Prepared) else item)
                if fragments and fragments[-1].finished is not None:
                    check_redo(finished, fragments[-1].finished, same_server=same_server)
                    self.ahead = items[index + 1 :]
                    return
        raise HistoriesDiffer(
            "The source does not show the log's last transaction again",
            hint="is another server behind this address?",
            seqno=finished.seqno,
            gtid=finished.gtid,
            event_id=finished.event_id,
        )

    def close_stream(self) -> None:
        """Let the source go. May be repeated."""
        self.ahead = []
        if self.stream is not None:
            self.stream.close()
            self.stream = None

    def close(self) -> None:
        """Let everything go: what was put is still published where Kafka takes it. May be repeated."""
        self.close_stream()
        if self._publisher is not None:
            self._publisher.end()
            self._publisher = None
        if self._transactions is not None:
            self._transactions.close()
            self._transactions = None


def _sharding(config: Config, plan: OnlinePlan) -> Sharding:
    if plan.control.partitions is None:
        raise ValueError("an epoch of no log")
    own = (config.source.heartbeat_table,) if config.source.heartbeat_table else ()
    partitions = plan.control.partitions
    return Sharding(rule=partitions.rule, since=partitions.since, bookkeeping=(*own, *config.publish.bookkeeping))


def _numbering(position: PositionRecord, epoch: Epoch) -> Numbering:
    return Numbering(
        epoch=epoch,
        next_seqno=Seqno(position.last_finished + 1),
        tails=position.tails,
        last_barrier=position.last_barrier,
    )


def _loaded(finished: Finished) -> bool:
    """Whether an event came from an initial load: it has no length in the source's log, so cannot be read there."""
    event = EventId.parse(finished.event_id)
    return (event.file, event.end) == (finished.start.file, finished.start.offset)
