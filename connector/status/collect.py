"""Reads the status of a service from Kafka, the source and the target; a server that does not answer is a problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import starmap
from typing import Final

from connector.clock import Clock, SystemClock
from connector.config.model import Config
from connector.config.snapshot import InitialLoad
from connector.errors import ConnectorError
from connector.kafka.ends import LogEnds, log_ends, partition_bounds
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import check_tails
from connector.log.epochs.control import ControlState
from connector.log.epochs.fork import Range, outside
from connector.log.epochs.history import History
from connector.log.epochs.loads import LoadState, outstanding
from connector.log.epochs.newest_load import NewestLoad
from connector.log.gtid.source_gtids import lacking
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import PositionRecord
from connector.mysql.server.replica import Replica
from connector.mysql.server.semi_sync import semi_sync_problem
from connector.status.catch_up import CatchUp, Sample
from connector.status.report import (
    ApplierStatus,
    End,
    LagLimits,
    Problem,
    ProducerStatus,
    ServiceState,
    Status,
    problems_of,
)
from connector.status.source import SourceView, read_source
from connector.targets.open import open_signal_table, read_position
from connector.targets.position import TargetRow
from connector.targets.signal_table import Inconsistent, Request
from connector.targets.target_schema import QUARANTINED, Excluded, LoadContent, Loading

WATCHED: Final = 1.0  # seconds of an applier's work that are measured for its rate
PATIENCE: Final = 3.0  # seconds to wait for that work
POLL_SECONDS: Final = 0.1
BEGIN_SECONDS: Final = 300.0  # an initial load begins without a dump connection, which takes seconds
FINISH_SECONDS: Final = 1.0  # after which several writers of a living applier have finished their commit


@dataclass(slots=True)
class _Found:
    """The answers of the servers, and the problems of those that did not answer."""

    problems: list[Problem] = field(default_factory=list)
    control: ControlState | None = None
    position: PositionRecord | None = None
    stored: LogEnds = field(default_factory=LogEnds)
    source: SourceView | None = None
    target: TargetRow | None = None
    target_known: bool = False
    request: Request | None = None
    inconsistent: Sequence[Inconsistent] = ()
    excluded: Mapping[TableName, Excluded] | None = None
    loading: Mapping[TableName, Loading] | None = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Note the error of a server that does not answer; the fields that are set before it stay."""
        try:
            yield
        except ConnectorError as error:
            self.problems.append(Problem(error.located, error.hint))


@dataclass(frozen=True, slots=True)
class Observation:
    """A status with what it was computed from.

    Args:
        status: the status.
        control, position, target: the answers of Kafka and of the target; None: none, or nothing was applied.
        ends: the ends of the log.
        source: the answer of the source; None: it was not asked, or does not answer.
    """

    status: Status
    control: ControlState | None
    position: PositionRecord | None
    ends: LogEnds
    target: TargetRow | None
    source: SourceView | None = None


def collect(
    config: Config, limits: LagLimits, clock: Clock | None = None, *, ends: frozenset[End] = frozenset(End)
) -> Status:
    """Read the status of a service from Kafka, and from the servers of the given ends.

    Args:
        config: names the service and its servers.
        limits: a number beyond one of them is a problem.
        clock: the time of the status.
        ends: the producer's, the target's, or both.

    Returns:
        The status; a server that does not answer is a problem in it.
    """
    return observe(config, limits, clock, ends=ends).status


def observe(
    config: Config,
    limits: LagLimits,
    clock: Clock | None = None,
    *,
    ends: frozenset[End] = frozenset(End),
    measure: bool = True,
) -> Observation:
    """Read the status of a service, and keep what it was computed from.

    Args:
        config, limits, clock, ends: as of `collect`.
        measure: watch a target that lags for up to `PATIENCE` seconds to estimate when it has caught up.
    """
    clock = clock or SystemClock()
    now = clock.now()
    found = _ask(config, ends, clock)
    waits_for = tuple(_replicas(config, found.source, found.problems)) if End.PRODUCER in ends else ()
    settings = config.source.snapshot
    producer = producer_status(found.control, found.position, found.stored, found.source, now, settings=settings)
    producer = replace(producer, waits_for=waits_for, semi_sync=_semi_sync(config, found))
    applier = applier_status(
        found.target,
        found.stored,
        now,
        known=found.target_known,
        request=found.request,
        inconsistent=found.inconsistent,
        excluded=found.excluded,
        loading=found.loading,
        loads=_newest_loads(found.control),
        trapped=found.control.trapped if found.control else (),
    )
    if measure and applier.events_behind and found.target is not None:
        applier = replace(applier, catch_up_seconds=_catch_up(config, found.target, found.stored, clock))
    problems = (*found.problems, *problems_of(producer, applier, limits))
    status = Status(config.service, producer, applier, problems, ends)
    return Observation(status, found.control, found.position, found.stored, found.target, found.source)


def _ask(config: Config, ends: frozenset[End], clock: Clock) -> _Found:
    found = _Found()
    with found.asking():
        with LogReader(config) as reader:
            found.control = reader.control(may_lack=True)
            if found.control.log is not None:
                found.position = reader.position()
        if found.control.log is not None:
            bounds = partition_bounds(config)
            incomplete = _incomplete_upto(config, bounds, found.control, found.position)
            found.stored = _with_deleted(log_ends(config, bounds), incomplete, found.position)
            check_tails(config)
    if End.PRODUCER in ends:
        with found.asking():
            found.source = read_source(config.source)
    if End.TARGET in ends:
        with found.asking():
            found.target = read_position(config.target.url.get_secret_value(), config.service)
            found.target_known = True
            if found.target is not None:
                found.target = _without_passing_intent(config, found.target, clock)
                found.problems += _problems_of_writers(found.target)
                with open_signal_table(config.target) as signals:
                    found.request = signals.request(config.service)
                    found.inconsistent = signals.inconsistent(config.service)
                    found.excluded = signals.excluded(config.service)
                    found.loading = signals.loading(config.service)
    return found


def _incomplete_upto(
    config: Config, bounds: Mapping[int, tuple[int, int]], control: ControlState, position: PositionRecord | None
) -> Seqno:
    """Return the last event of which messages may be deleted."""
    if position is None:
        return NO_SEQNO
    with LogReader(config, point_lookup=True) as reader:
        return reader.incomplete_upto(bounds, History.of(control, position.last_finished), position)


def _with_deleted(ends: LogEnds, incomplete: Seqno, position: PositionRecord | None) -> LogEnds:
    """Return the ends of a log of which retention has deleted messages of the events up to `incomplete`.

    The first event is the first that a target may need next, as a handshake decides; where all are deleted, it comes
    after the position's last one.
    """
    if position is None or position.last_finished < 0:
        return ends
    return replace(ends, oldest=Seqno(incomplete + 1), newest=max(ends.newest, position.last_finished))


def _without_passing_intent(config: Config, target: TargetRow, clock: Clock) -> TargetRow:
    """Read a target again if several writers commit at the moment; drop the intent if another one has followed."""
    if target.intent is None:
        return target
    clock.sleep(FINISH_SECONDS)
    later = read_position(config.target.url.get_secret_value(), config.service)
    if later is None or later.intent is None or later.intent.last == target.intent.last:
        return later or target
    causes = tuple(word for word in later.reasons if word != "channels")
    return replace(later, intent=None, reasons=causes, consistent=not {"load", "rewind"} & set(causes))


def _problems_of_writers(target: TargetRow) -> Iterator[Problem]:
    if target.intent is not None:
        yield Problem(f"a commit of several writers is not complete ({target.intent})", "thl apply finishes it")
    if target.unreadable:
        unreadable = f"the account may not read {', '.join(target.unreadable)}"
        yield Problem(unreadable, "GRANT SELECT ON ALL TABLES IN SCHEMA thl TO …")


def producer_status(
    control: ControlState | None,
    position: PositionRecord | None,
    ends: LogEnds,
    source: SourceView | None,
    now: int,
    *,
    settings: InitialLoad,
) -> ProducerStatus:
    """Compute the producer's numbers from the answers of Kafka and the source; by the settings, if loads pause."""
    if control is None or control.log is None or position is None:
        return ProducerStatus(
            state=ServiceState.UNKNOWN if control is None else ServiceState.NONE,
            current_event_id=str(source.end) if source else None,
        )
    behind = _transactions(source, position)
    complete = _is_complete(source, position, behind)
    age = _seconds(now, ends.newest_commit)
    state = ServiceState.UNKNOWN
    if source is not None:
        state = ServiceState.OFFLINE if not source.read else ServiceState.ONLINE if complete else ServiceState.BEHIND
    epoch = control.epochs[-1].epoch if control.epochs else 0
    begun = control.epochs[-1].started if control.epochs else 0
    begins = now - max(begun, ends.newest_commit or 0) < BEGIN_SECONDS * 1e6
    if position.snapshot and source is not None and (source.read or begins):
        state = ServiceState.LOADING
    request = (
        control.offline if control.offline and control.offline.epoch == epoch else None
    )  # else the request was for an earlier epoch
    if request is not None and request.offline_at is None and state is not ServiceState.OFFLINE:
        state = ServiceState.STOPPING
    return ProducerStatus(
        state=state,
        log_id=control.log.log_id,
        latest_epoch_number=epoch,
        restarts=max(len(control.epochs) - 1, 0),
        minimum_stored_seqno=ends.oldest,
        maximum_stored_seqno=position.last_finished,
        last_event_id=position.finished.event_id if position.finished else "",
        resume=str(position.resume),
        current_event_id=str(source.end) if source else None,
        events_behind=behind,
        seconds_behind=None if complete is None else 0.0 if complete else age,
        unfinished=position.open is not None,
        prepared=position.prepared.count,
        seconds_until_purge=source.seconds_until_purge(position, ends.newest_commit, now) if source else None,
        load_pause=source.load_pause(settings, position, ends.newest_commit, now)
        if source and outstanding(control.load_requests.values(), control.loads, control.trapped)
        else None,
        offline_requested_by=request.asked_by if request else "",
        offline_reason=request.reason if request else "",
    )


def applier_status(
    target: TargetRow | None,
    ends: LogEnds,
    now: int,
    *,
    known: bool,
    request: Request | None = None,
    inconsistent: Sequence[Inconsistent] = (),
    excluded: Mapping[TableName, Excluded] | None = None,
    loading: Mapping[TableName, Loading] | None = None,
    loads: Mapping[TableName, NewestLoad] | None = None,
    trapped: Sequence[Range] = (),
) -> ApplierStatus:
    """Compute the applier's numbers.

    Args:
        target: its row; None: there is none.
        ends: the ends of the log.
        now: µs since 1970 UTC.
        known: the target was read.
        request: the newest request to go offline.
        inconsistent, excluded, loading: tables of which the target says so.
        loads: the newest loads, by the tables' names in the log.
        trapped: events that are in the log, but are not to be applied.
    """
    if target is None:
        return ApplierStatus(state=ServiceState.NONE if known else ServiceState.UNKNOWN)
    behind = outside(trapped, Seqno(target.seqno + 1), ends.newest) if ends.newest >= 0 else None
    relative = _seconds(now, target.commit_time or None)
    tables_alone = bool(loading) and all(entry.consistent for entry in (loading or {}).values())
    unbegun = target.seqno < 0 and bool(behind)  # the beginning of an initial load is not applied yet
    if request is not None and request.offline_at is None and target.applier is False:
        request = None  # nobody has heard it
    if request is not None:
        state = ServiceState.STOPPING if request.offline_at is None else ServiceState.OFFLINE
    elif target.applier is False:
        state = ServiceState.OFFLINE
    elif unbegun or (not target.consistent and target.reasons != ("channels",) and not tables_alone):
        state = ServiceState.LOADING
    else:
        state = ServiceState.UNKNOWN if behind is None else ServiceState.BEHIND if behind else ServiceState.ONLINE
    return ApplierStatus(
        state=state,
        applied_last_seqno=target.seqno,
        applied_last_event_id=target.event_id,
        applied_last_epoch=target.epoch,
        applied_latency=_seconds(target.applied_at, target.commit_time or None),
        relative_latency=relative,
        events_behind=behind,
        seconds_behind=None if behind is None else relative if behind else 0.0,
        consistent=target.consistent and not unbegun,
        inconsistent_because=target.reasons,
        channels=target.channels,
        open_intent=target.intent,
        restarts=max(target.token - 1, 0),
        offline_requested_by=request.asked_by if request else "",
        offline_reason=request.reason if request else "",
        inconsistent_tables=tuple(f"{one.schema}.{one.table} since {one.since} ({one.reason})" for one in inconsistent),
        excluded_tables=tuple(starmap(_excluded, (excluded or {}).items())),
        loading_tables=tuple(_loading(name, entry, (loads or {}).get(name)) for name, entry in (loading or {}).items()),
    )


def _excluded(name: TableName, entry: Excluded) -> str:
    reason, known, _ = entry.reason.partition("\n")
    if reason.startswith(QUARANTINED) and not known:  # by an applier that did not part values of rows from the rest
        reason = f"{QUARANTINED}thl_excluded has the cause"
    return f"{name} since {entry.since}, {entry.changes} row changes, by {entry.by} ({reason})"


def _newest_loads(control: ControlState | None) -> dict[TableName, NewestLoad]:
    if control is None:
        return {}
    newest = NewestLoad.each(control.load_requests, control.loads, control.trapped)
    return {load.in_log: load for load in newest}


def _loading(name: TableName, entry: Loading, load: NewestLoad | None) -> str:
    began = datetime.fromtimestamp(entry.at / 1e6, UTC).isoformat(timespec="seconds")
    waits = {
        LoadContent.AWAITS_ROWS: ", waits for its rows",
        LoadContent.AWAITS_BEGIN: ", has to be loaded again, because its key has changed",
    }
    ended = "" if load is None or load.state not in (LoadState.CANCELLED, LoadState.STOPPED) else load.state
    again = f", but the load was {ended}: the table is not whole here before the end of another `thl load`"
    return f"{name} since {entry.since} ({began}){waits.get(entry.state, '')}{again if ended else ''}"


def _replicas(config: Config, source: SourceView | None, problems: list[Problem]) -> Iterator[str]:
    """Ask the replicas of publish.wait_for; one that does not answer stops publication."""
    for url in config.publish.wait_for:
        replica = Replica(url.get_secret_value(), config.source)
        try:
            replica.ask("")
            missing = None if source is None else replica.missing(source.gtid_set or "")
            yield f"{replica.name} lacks {'?' if missing is None else missing.count()} transactions"
        except ConnectorError as error:
            problems.append(Problem(f"publication waits for {replica.name}: {error.message}", error.hint))
            yield f"{replica.name} does not answer"
        finally:
            replica.close()


def _semi_sync(config: Config, found: _Found) -> str:
    """ON or OFF, and a problem if commits do not wait for the producer; "" if that is not asked for, or not known."""
    if not config.source.semi_sync or found.source is None:
        return ""
    problem = semi_sync_problem(found.source.semi_sync, connected=found.source.read)
    if problem:
        found.problems.append(Problem(f"commits on the source do not wait until Kafka has them: {problem}"))
    return "OFF" if problem else "ON"


def _catch_up(config: Config, target: TargetRow, ends: LogEnds, clock: Clock) -> float | None:
    """Measure the rate of a lagging target from commit to commit, by its own commit times."""
    catch_up = CatchUp()
    catch_up.add(Sample(target.applied_at / 1e6, target.seqno, ends.newest))
    started = clock.monotonic()
    try:
        while catch_up.span < WATCHED and clock.monotonic() - started < PATIENCE:
            clock.sleep(POLL_SECONDS)
            row = read_position(config.target.url.get_secret_value(), config.service)
            if row is not None and row.seqno != target.seqno:
                target = row
                catch_up.add(Sample(row.applied_at / 1e6, row.seqno, log_ends(config).newest))
    except ConnectorError:
        return None  # it answered before: the next status will report it
    estimate = catch_up.estimate()
    return None if estimate is None else estimate.seconds


def has_all(source: SourceView | None, position: PositionRecord) -> bool | None:
    """Return whether the log has what the source had when it was read; None: unknown.

    Without GTIDs that is so once the position has reached the end of the binary log: an idle producer's follows it
    within seconds, past rotations and filtered transactions, too.
    """
    return _is_complete(source, position, _transactions(source, position))


def _is_complete(source: SourceView | None, position: PositionRecord, missing: int | None) -> bool | None:
    """As `has_all`, with what `_transactions` has found."""
    if source is None:
        return None
    return source.end <= position.resume if missing is None else missing == 0


def _transactions(source: SourceView | None, position: PositionRecord) -> int | None:
    """Return the number of transactions of the source that are neither in the log nor filtered out; None: unknown."""
    if source is None:
        return None
    if source.gtid_set is None or position.gtid_set is None:
        return 0 if source.end <= position.resume else None
    return lacking(source.gtid_set, position.gtid_set).count()


def _seconds(later: int, earlier: int | None) -> float | None:
    return None if earlier is None else max(later - earlier, 0) / 1e6
