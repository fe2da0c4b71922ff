"""Goes online in six steps; a crash between any two is harmless: docs/internals/log.md.

1. Fence the older producer. 2. Read control, position and the partitions' tails to their ends. 3. Check that they are
consistent (`connector.log.writing.online.decide`). 4. Read the last transaction from the source again and compare it
(`connector.producer.compared_stream`). 5. Write epoch, markers and position in one Kafka transaction.
6. Publish from there on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, Final

from connector import failpoints as faults
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, ConnectorError, HistoriesDiffer, LogDamaged, PreflightError
from connector.health import ProcessHealth
from connector.kafka.log_reader import LogReader
from connector.kafka.prepared_records import PreparedState
from connector.kafka.requests import new_load_id
from connector.kafka.tails import AGAIN
from connector.kafka.topics import Topics
from connector.kafka.transactions import Transactions
from connector.kafka.trapped import trapped_events
from connector.log.epochs.control import ControlState, EpochRecord
from connector.log.epochs.fork import Accepted, accept, ranges_text
from connector.log.epochs.loads import LoadRequest
from connector.log.format.shard_rule import ShardRule
from connector.log.gtid.source_gtids import lacking
from connector.log.ids import Seqno
from connector.log.transaction.definition import Definitions, Redefined, TableDefinition
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import PositionRecord
from connector.log.writing.online import OnlinePlan, SourceFound, TailFound, decide
from connector.producer.compared_stream import ComparedStream
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering, Sharding
from connector.producer.given_start import check_start, tell_of_start
from connector.producer.ownership import EpochOwnership
from connector.producer.prepared_xa import PreparedTransactions
from connector.producer.publish.publisher import Publisher
from connector.producer.publish.queue import RowCounts, Work
from connector.producer.publish.replica_gate import ReplicaGate
from connector.producer.sources.source import EventSource
from connector.schema import Framing

if TYPE_CHECKING:  # a producer without a record store needs nothing of it
    from connector.producer.records.completion import EventCompleter

LOG: Final = logging.getLogger(__name__)
COMMITTED_FIRST: Final = (
    "with the earlier source.filters let the producer publish their commits; then change the filters"
)


@dataclass(slots=True)
class Online:
    """The objects of a producer that is online.

    Args:
        transactions: the transactional Kafka producer, which has fenced older ones.
        publisher: writes to Kafka.
        encoder: numbers and encodes events.
        stream: reads the source.
        prepared: the XA transactions between XA PREPARE and XA COMMIT.
        ownership: the epochs that this process began; a new epoch is added.
        control: the content of the control topic.
        control_end: the end offset of the control topic before this producer wrote to it.
        completion: completes partial images; None without a record store.
    """

    transactions: Transactions
    publisher: Publisher
    encoder: Encoder
    stream: ComparedStream
    prepared: PreparedTransactions
    ownership: EpochOwnership
    control: ControlState
    control_end: int
    completion: EventCompleter | None = None

    def begin(self, plan: OnlinePlan) -> None:
        """Begin another epoch, and continue numbering in it."""
        _write_epoch(plan, self.publisher, self.encoder, self.ownership)
        self.control = plan.control
        self.number(plan.position)

    def number(self, position: PositionRecord) -> None:
        """Continue numbering from a position, in the newest epoch."""
        if self.completion is not None:
            self.completion.go_back(position.last_finished)
        _number(self.encoder, position, self.control.epochs[-1])

    def read_again(self, table: TableName) -> bool:
        """True if a load that has read all of a table has to read it once more, because the record store lacks rows."""
        return self.completion is not None and self.completion.tables.find_again(table, self.encoder.next_seqno)

    def put(self, work: Work) -> None:
        """Queue work of the encoder, with the counts of its tables; see `Publisher.put`."""
        if counts := self.encoder.drain_counts():
            work.append(RowCounts(counts))
        self.publisher.put(work)

    def close(self) -> None:
        """Close everything; queued work is still published if Kafka accepts it. May be repeated."""
        self.stream.close()
        self.publisher.end()
        self.transactions.close()
        if self.completion is not None:
            self.completion.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingOnline:
    """One attempt to go online.

    Args:
        config: the configuration.
        source: the server or the files.
        clock: the clock.
        stop: set to stop the producer.
        ownership: the epochs that this process began: a retry must not fence a newer producer or create a new log.
        framing: the first bytes of every message.
        accept_trapped: continue although the source lacks transactions that the log has.
        accept_partial: patterns of tables that may begin to be captured although they have rows.
        start: the start that was given for a new log beside the configuration; None: none.
        gate: the replicas that must have a transaction before it is published; None: none.
        health: has the loops of the producer's threads; None: nobody asks.
    """

    config: Config
    source: EventSource
    clock: Clock
    stop: Event
    ownership: EpochOwnership
    framing: Framing
    accept_trapped: bool = False
    accept_partial: Sequence[str] = ()
    start: str | None = None
    gate: ReplicaGate | None = None
    health: ProcessHealth | None = None

    def run(self) -> Online:
        """Execute all six steps; close everything after an error.

        Raises:
            Fenced: a newer producer runs.
            LogDamaged, UnsafeTopic: a check of the log failed; nothing was written.
            HistoriesDiffer, PreflightError: a check of the source failed; nothing was written.
            BrokerUnavailable, SourceUnavailable: a server does not answer, or brokers that have just come back did not
                show the log's end at first; retryable.
            ReplicaLagging: `stop` was set while replicas lacked transactions of the log.
        """
        self.source.check(load=False)
        self.ownership.verify(self.config)
        # From here on with the topics' own settings; the configured ones are for new topics.
        kafka = Topics(self.config).ensure()
        return replace(self, config=self.config.model_copy(update={"kafka": kafka}))._steps()

    def _steps(self) -> Online:
        log: _LogFound | None = None
        with ExitStack() as opened:
            transactions = self._fence(opened)
            try:
                log = self._read_log()
                self.ownership.check(log.control, self.config)  # since `run` has asked, a newer one may have begun
                faults.point("produce.after_read_log")
                facts = self.source.facts(new=log.position is None)
                plan = self._decide(log, facts)
                if self.start is not None and not plan.new:
                    check_start(self.start, plan.position, plan.control.epochs[0], facts.server_uuid)
                encoder = self._encoder(plan, facts)
                encoder.completion = completion = self._completion(plan, opened)
                stream = self._compare(plan, facts, encoder, opened)
            except (LogDamaged, HistoriesDiffer, PreflightError) as error:
                # The work of a newer producer can look like damage, or like another history.
                transactions.confirm()
                if log is not None and self._has_another_end(log, error):
                    raise BrokerUnavailable(
                        "the brokers show another end of the log than a moment ago", service=self.config.service
                    ) from error
                raise
            publisher = self._publisher(transactions, opened)
            _write_epoch(plan, publisher, encoder, self.ownership)
            _number(encoder, plan.position, plan.epoch)
            prepared = PreparedTransactions(self.config, encoder, publisher, plan.epoch.epoch, log.prepared)
            opened.pop_all()
        self._log_online(plan)
        return Online(
            transactions,
            publisher,
            encoder,
            stream,
            prepared,
            self.ownership,
            plan.control,
            log.control_end,
            completion,
        )

    def _fence(self, opened: ExitStack) -> Transactions:
        """Step 1: fence the older producer."""
        transactions = Transactions(self.config, self.clock)
        opened.callback(transactions.close)
        transactions.open()
        faults.point("produce.after_fence")
        return transactions

    def _has_another_end(self, log: _LogFound, error: ConnectorError) -> bool:
        """Look at the log again: nobody writes, so if its end is another one, what was read was not all.

        Seen after kill -9 of a broker: for a moment it does not show a topic's last records, as if they were lost.
        """
        pauses = (0.0,) if isinstance(error, PreflightError) else (0.0, AGAIN, AGAIN)
        for pause in pauses:
            self.clock.sleep(pause)
            if self._read_log().ends != log.ends:
                return True
        return False

    def _read_log(self) -> _LogFound:
        """Step 2: read control, position and tails."""
        with LogReader(self.config, role="producer") as reader:
            return _LogFound(
                control_end=reader.control_end(),
                control=reader.control(),
                position=reader.position(),
                prepared=reader.prepared(),
                tails={partition: reader.tail(partition) for partition in range(self.config.kafka.partitions)},
            )

    def _decide(self, log: _LogFound, facts: SourceFound) -> OnlinePlan:
        """Step 3: check that they are consistent, and plan the epoch."""
        config = self.config
        if config.publish.wait_for and facts.executed is None:
            raise PreflightError(
                "publish.wait_for needs GTIDs, and the source has none: a replica cannot say what it has executed",
                hint="SET PERSIST enforce_gtid_consistency = ON; and gtid_mode step by step to ON; or remove "
                "publish.wait_for",
            )
        joined: list[LoadRequest] = []
        if log.position is not None and log.control.epochs and not log.position.snapshot:
            joined = self._joined(log, log.control.epochs[-1], facts)
            self._check_prepared_rows(log, facts)
        accepted = self._accepted(log, facts) if self.accept_trapped else None
        rule = ShardRule(config.publish.shard_by, tuple((one.name, one.pattern) for one in config.publish.shards))
        plan = decide(
            log.control, log.position, log.tails, facts, log.prepared.pending.kept, accepted=accepted, rule=rule
        )
        if plan.partitions and not plan.new:
            fields = {"service": config.service, "rule": rule, "since": plan.partitions.since}
            LOG.warning("the rule of shards has changed: consumers of single shards stop there", extra=fields)
        requests = {**plan.control.load_requests, **{request.table: request for request in joined}}
        plan = replace(plan, loads=joined, control=replace(plan.control, load_requests=requests))
        if joined and plan.control.tables is not None:
            tables = _with_joined(plan.control.tables, joined)
            plan = replace(plan, tables=tables, control=replace(plan.control, tables=tables))
        return plan

    def _joined(self, log: _LogFound, last: EpochRecord, facts: SourceFound) -> list[LoadRequest]:
        """Ask for the loads of the tables that the current filters capture and those of the log's last epoch did not.

        Raises:
            PreflightError: no load makes such a table whole; or XA transactions are prepared, which lack its changes.
        """
        if last.has_filters(facts.filters, facts.capture):
            return []
        tables = self.source.check_widened(last.capture, self.accept_partial)
        if tables and (xids := _xids(log)):
            raise PreflightError(
                "tables join while XA transactions are prepared, whose changes of these tables the log does not have",
                hint=COMMITTED_FIRST,
                tables=", ".join(map(str, tables)),
                xids=xids,
            )
        by = "source.filters"
        return [
            LoadRequest(table=name, load=new_load_id(), asked_at=facts.now, asked_by=by, published=published)
            for name, published in tables.items()
        ]

    def _check_prepared_rows(self, log: _LogFound, facts: SourceFound) -> None:
        """Check that the record store will know the rows of prepared XA transactions for those of the current filters.

        Raises:
            PreflightError: some were prepared under others, or the filters have changed since the last epoch.
        """
        if self.config.source.records.dir is None:
            return
        epochs = {one.epoch: one for one in log.control.epochs}
        since = [*(epochs[one.epoch] for one in log.prepared.pending), log.control.epochs[-1]]
        xids = _xids(log)
        if xids and not all(one.has_filters(facts.filters, facts.capture) for one in since):
            raise PreflightError(
                "source.filters have changed while XA transactions are prepared, whose rows the record store "
                "would take for rows of the new ones",
                hint=f"{COMMITTED_FIRST}; or without source.records.dir publish them under these",
                xids=xids,
            )

    def _accepted(self, log: _LogFound, facts: SourceFound) -> Accepted | None:
        """Return the trapped transactions if there are any and they are accepted."""
        position = log.position
        if position is None or position.gtid_set is None or facts.executed is None:
            return None
        missing = lacking(position.gtid_set, facts.executed)
        if not missing:
            return None
        events = trapped_events(self.config, log.control, position, facts.executed)
        accepted = accept(position, str(missing), events, log.prepared.pending)
        LOG.warning(
            "continuing without trapped transactions: targets that have applied them are refused",
            extra={
                "service": self.config.service,
                "trapped": accepted.forked.trapped,
                "trapped_events": ranges_text(accepted.forked.events),
                "source": facts.source_id,
            },
        )
        return accepted

    def _encoder(self, plan: OnlinePlan, facts: SourceFound) -> Encoder:
        publish, kafka = self.config.publish, self.config.kafka
        return Encoder(
            service=self.config.service,
            source_id=facts.source_id,
            partitions=kafka.partitions,
            limits=Limits(
                fragment=min(publish.fragment_bytes, kafka.max_message_bytes // 2),
                shard=publish.shard_bytes,
                message=kafka.max_message_bytes,
            ),
            framing=self.framing,
            sharding=_sharding(self.config, plan),
        )

    def _completion(self, plan: OnlinePlan, opened: ExitStack) -> EventCompleter | None:
        if self.config.source.records.dir is None:
            return None
        from connector.producer.records.opening import open_completion  # noqa: PLC0415

        completion = open_completion(self.config, plan.control, plan.position.last_finished, self.stop)
        if completion is not None:
            opened.callback(completion.close)
        return completion

    def _compare(self, plan: OnlinePlan, facts: SourceFound, encoder: Encoder, opened: ExitStack) -> ComparedStream:
        """Step 4: compare the last transaction; before an initial load check its prerequisites instead."""
        stream = ComparedStream(self.source, self.config.service, self.clock, self.stop, plan.control.tables)
        opened.callback(stream.close)
        if plan.position.snapshot:
            self.source.check(load=True)
        else:
            stream.open(plan.position, plan.control, facts.server_uuid, encoder)
        return stream

    def _publisher(self, transactions: Transactions, opened: ExitStack) -> Publisher:
        publisher = Publisher(
            self.config,
            transactions,
            self.clock,
            faults.point,
            self.gate,
            created=self.source.created,
            acknowledger=self.source.acknowledger,
            health=self.health,
        )
        opened.callback(publisher.end)
        return publisher

    def _log_online(self, plan: OnlinePlan) -> None:
        if self.start is not None and not plan.new:
            tell_of_start(self.start, self.config.service, plan.position)
        LOG.info(
            "online",
            extra={
                "service": self.config.service,
                "log_id": plan.control.log.log_id if plan.control.log else "",
                "epoch": plan.epoch.epoch,
                "next_seqno": plan.epoch.first_seqno,
                "resume": plan.position.resume,
                "snapshot": plan.position.snapshot,
            },
        )


def _with_joined(tables: Definitions, joined: Sequence[LoadRequest]) -> Definitions:
    """Return the source's tables with those that join: they are there; what they are at the position is not known."""
    why = "it was not captured before"
    unknown = {one.table: TableDefinition.without_columns(one.table, why) for one in joined}
    schemas = {name.schema: "" for name in unknown if name.schema not in tables.schemas}
    return tables.after(Redefined({name: one for name, one in unknown.items() if name not in tables.tables}, schemas))


@dataclass(frozen=True, slots=True, kw_only=True)
class _LogFound:
    """The log's topics, read to their ends."""

    control_end: int
    control: ControlState
    position: PositionRecord | None
    prepared: PreparedState
    tails: Mapping[int, TailFound]

    @property
    def ends(self) -> tuple[object, ...]:
        """The end of each topic; equal for two readings between which nothing was written."""
        return self.control_end, self.position, self.prepared.end, self.tails


def _xids(log: _LogFound) -> str:
    """The prepared XA transactions, by their xids."""
    return " ".join(sorted(one.xid for one in log.prepared.pending))


def _write_epoch(plan: OnlinePlan, publisher: Publisher, encoder: Encoder, ownership: EpochOwnership) -> None:
    """Step 5: write epoch, markers and position."""
    markers = [encoder.marker(partition, header) for partition, header in plan.markers.items()]
    ownership.epochs.append(plan.epoch)  # before the write: a commit with an unknown outcome may have written it
    publisher.online(plan, markers)
    ownership.log_id = plan.control.log.log_id if plan.control.log else None


def _number(encoder: Encoder, position: PositionRecord, epoch: EpochRecord) -> None:
    encoder.begin(
        Numbering(
            epoch=epoch.epoch,
            next_seqno=Seqno(position.last_finished + 1),
            tails=position.tails,
            last_barrier=position.last_barrier,
        )
    )


def _sharding(config: Config, plan: OnlinePlan) -> Sharding:
    if plan.control.partitions is None:
        raise ValueError("an epoch without a log")
    own = (config.source.heartbeat_table,) if config.source.heartbeat_table else ()
    partitions = plan.control.partitions
    return Sharding(rule=partitions.rule, since=partitions.since, bookkeeping=(*own, *config.publish.bookkeeping))
