"""Going online, as decisions without I/O: what a producer must find, and what it writes before its first event.

The caller has fenced the older producer (`init_transactions`) *before* it read anything that is given here, read
every topic to its end with `read_committed`, and writes the plan in one Kafka transaction. Dying before that
transaction's commit is harmless: nothing was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from connector.log.epochs.control import ControlState, EpochRecord, LogRecord, PartitionMap
from connector.log.epochs.fork import TRAPPED, TRAPPED_EVENTS, Accepted, overlaps, ranges_text, without
from connector.log.epochs.history import History
from connector.log.epochs.loads import LoadRequest
from connector.log.format.header import FragmentHeader
from connector.log.format.shard_rule import SINCE, VERSION, ShardRule
from connector.log.ids import NO_SEQNO, UNKNOWN_SHARD, Epoch, Kind, LogId, Outcome, Seqno
from connector.log.transaction.definition import Definitions
from connector.log.transaction.pending import NOTHING, PendingChecksum
from connector.log.transaction.position import Finished, PositionRecord, SourcePosition
from connector.log.writing.tail import TailFound, check_log, check_prepared
from connector.log.writing.trapped import check_redo, check_source

__all__ = [
    "OnlinePlan",
    "SourceFound",
    "TailFound",
    "check_redo",
    "comparable",
    "decide",
    "go_back",
    "incomparable",
    "markers",
    "recheck_source",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFound:
    """The source as the producer that goes online finds it.

    Args:
        source_id: the source's host:port, as configured.
        server_uuid: the source's own name for itself.
        now: µs since 1970 UTC.
        log_id: a fresh random identity; used only when the log is new.
        start: where a new log begins in the source.
        gtid_set: the GTIDs that a new log counts as seen; None where the source has no GTIDs.
        executed: `gtid_executed` of the source now; None where it has no GTIDs.
        unlogged: the last GTIDs that the source replicated without writing them to its log; None: there are none.
        files: the source's binary logs and their sizes now (`SHOW BINARY LOGS`); None when they were not asked for.
        snapshot: a new log begins with an initial load.
        tables: the source's tables at the start of a new log; None when they are not known.
        filters: fingerprint of the filters; None: unknown, nothing is compared with it.
        capture: the filters themselves, for the producers after this one; None: unknown.
    """

    source_id: str
    server_uuid: str
    now: int
    log_id: LogId
    start: SourcePosition
    gtid_set: str | None = None
    executed: str | None = None
    unlogged: str | None = None
    files: Mapping[str, int] | None = None
    snapshot: bool = False
    tables: Definitions | None = None
    filters: str | None = None
    capture: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlinePlan:
    """The records that are written, in one Kafka transaction, before the first event.

    Args:
        log: to the control topic, when the log is new.
        partitions: to the control topic, when the log is new or the rule of shards has changed.
        epoch: to the control topic.
        markers: partition → header of its EPOCH marker; every partition has one.
        position: to the position topic.
        control: the control topic after the plan is written.
        tables: to the control topic, when the log is new and they are known, or when some are or become unknown.
        loads: to the control topic: the loads of tables that are captured from this epoch on.
    """

    log: LogRecord | None
    partitions: PartitionMap | None
    epoch: EpochRecord
    markers: Mapping[int, FragmentHeader]
    position: PositionRecord
    control: ControlState
    tables: Definitions | None = None
    loads: Sequence[LoadRequest] = ()

    @property
    def new(self) -> bool:
        """True where the log begins with this epoch."""
        return self.log is not None

    @property
    def redo(self) -> Finished | None:
        """The event that the source must show again, the same as it was (`check_redo`), before the plan is written."""
        return comparable(self.control, self.position)


def decide(
    control: ControlState,
    position: PositionRecord | None,
    tails_found: Mapping[int, TailFound],
    source: SourceFound,
    prepared: PendingChecksum = NOTHING,
    *,
    accepted: Accepted | None = None,
    rule: ShardRule | None = None,
) -> OnlinePlan:
    """Begin a new log, or continue the existing one.

    Args:
        control: the control topic, read to its end.
        position: the newest record of the position topic, None if it has none.
        tails_found: the last message of every partition of the event topic.
        source: the source as it is now.
        prepared: the XA transactions that the topic of them says are pending.
        accepted: the trapped transactions that the log is to go on without.
        rule: the rule by which events get their shards from now on; None: the log's own.

    Raises:
        LogDamaged: the topics contradict each other: one was re-created, lost its end, or was repartitioned.
        HistoriesDiffer: the source lacks transactions that the log has.
    """
    check_log(control, position, tails_found)
    check_prepared(position, prepared)
    if position is None or control.log is None:
        log = LogRecord(log_id=source.log_id, created=source.now)
        partitions = PartitionMap(1, len(tails_found), rule or ShardRule())
        first = PositionRecord(
            finished=None,
            resume=source.start,
            gtid_set=source.gtid_set,
            open=None,
            tails=dict.fromkeys(tails_found, NO_SEQNO),
            snapshot=source.snapshot,
            server_uuid=source.server_uuid,
        )
        plan = _plan(ControlState(log, partitions, (), source.tables), first, source, "online")
        return replace(plan, log=log, partitions=partitions, tables=source.tables)
    map_ = _changed_map(control.partitions, position, rule)
    control = replace(control, partitions=map_ or control.partitions)
    if accepted is None:
        recheck_source(control, position, source)
        return replace(_plan(control, position, source, "online"), partitions=map_)
    position = replace(position, gtid_set=without(position.gtid_set, accepted.forked))
    recheck_source(control, position, source)
    tables = _unknown(control.tables, accepted)
    plan = _plan(replace(control, tables=tables), position, source, "forked", accepted)
    return replace(plan, partitions=map_, tables=None if tables is control.tables else tables)


def comparable(control: ControlState, position: PositionRecord) -> Finished | None:
    """The log's last event, where the source can show it again: see `incomparable`."""
    return None if incomparable(control, position) else position.finished


def incomparable(control: ControlState, position: PositionRecord) -> str:
    """Return why the source cannot show the log's last event again as it was; "" where it can, or where there is none.

    An event is what filters made of a transaction: under others it is another event, or none.

    Args:
        control: the newest epoch is the one that asks.
        position: the log's.
    """
    finished = position.finished
    if finished is None:
        return ""
    history = History.of(control, position.last_finished)
    if overlaps(history.trapped, finished.seqno, finished.seqno):
        return "it is trapped"
    wrote, asks = history.covering(finished.seqno).filters, control.epochs[-1].filters
    if wrote is not None and asks is not None and wrote != asks:
        return "the filters have changed since it was published"
    return ""


def go_back(control: ControlState, position: PositionRecord, source: SourceFound) -> OnlinePlan:
    """Begin a new epoch while online, because the source's stream broke within an event.

    The event is published again from its first fragment.

    Args:
        control: the control topic after the plan before.
        position: the position committed in Kafka.
        source: the source as it is now.

    Raises:
        HistoriesDiffer: the source lacks transactions that the log has.
    """
    recheck_source(control, position, source)
    return _plan(control, position, source, "went back")


def markers(
    log_id: LogId, epoch: EpochRecord, position: PositionRecord, partitions: PartitionMap | None = None
) -> dict[int, FragmentHeader]:
    """The headers of an epoch's markers, for every partition.

    A marker's `prev_seqno` names the partition's last event, as that of an event does.

    Args:
        log_id, epoch, position, partitions: the sources of the markers' fields and metadata.
    """
    metadata = {"log_id": log_id, "last_finished": str(position.last_finished)}
    if position.gtid_set is not None:
        metadata["gtid_set"] = position.gtid_set
    if partitions is not None and partitions.begins:
        metadata |= {VERSION: str(partitions.version), SINCE: str(partitions.since)}
    if epoch.forked is not None:
        metadata |= {TRAPPED: epoch.forked.trapped, TRAPPED_EVENTS: ranges_text(epoch.forked.events)}
    return {
        partition: FragmentHeader(
            seqno=epoch.first_seqno,
            fragno=0,
            last_frag=True,
            epoch=epoch.epoch,
            kind=Kind.EPOCH,
            shard=UNKNOWN_SHARD,
            prev_seqno=tail,
            last_barrier=position.last_barrier,
            rows=0,
            source_id=epoch.source_id,
            server_id=0,
            thread_id=0,
            gtid=None,
            last_committed=0,
            sequence_number=0,
            metadata=metadata,
            outcome=Outcome.VOID,
        )
        for partition, tail in position.tails.items()
    }


def _changed_map(
    partitions: PartitionMap | None, position: PositionRecord, rule: ShardRule | None
) -> PartitionMap | None:
    """The next version of the partition map, from the next event on; None where the rule has not changed."""
    if partitions is None or rule is None or partitions.rule == rule:
        return None
    return partitions.by(rule, Seqno(position.last_finished + 1))


def recheck_source(control: ControlState, position: PositionRecord, source: SourceFound) -> None:
    """Check that the source, as it is now, has every transaction that the log has.

    Raises:
        HistoriesDiffer: as `check_source`.
    """
    last = control.epochs[-1]
    check_source(
        position,
        last,
        server_uuid=source.server_uuid,
        executed=source.executed,
        unlogged=source.unlogged,
        files=source.files,
    )


def _unknown(tables: Definitions | None, accepted: Accepted) -> Definitions | None:
    """The source's tables; all become unknown once a definition is trapped."""
    if tables is None or accepted.definition is None:
        return tables
    why = f"event {accepted.definition}, a definition, is trapped: the new source does not have it"
    return Definitions({name: replace(table, unknown=why) for name, table in tables.tables.items()}, tables.schemas)


def _plan(
    control: ControlState,
    position: PositionRecord,
    source: SourceFound,
    reason: str,
    accepted: Accepted | None = None,
) -> OnlinePlan:
    """The next epoch, after the last finished event; whatever is open is given up."""
    if control.log is None:
        raise ValueError("an epoch needs a log")
    epoch = EpochRecord(
        epoch=Epoch(control.epochs[-1].epoch + 1 if control.epochs else 1),
        first_seqno=Seqno(position.last_finished + 1),
        source_id=source.source_id,
        server_uuid=source.server_uuid,
        started=source.now,
        reason=reason,
        gtid_set=position.gtid_set,
        forked=None if accepted is None else accepted.forked,
        filters=source.filters,
        capture=source.capture,
    )
    position = replace(position, open=None)
    return OnlinePlan(
        log=None,
        partitions=None,
        epoch=epoch,
        markers=markers(control.log.log_id, epoch, position, control.partitions),
        position=position,
        control=replace(control, epochs=(*control.epochs, epoch)),
    )
