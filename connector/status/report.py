"""The numbers of a service, under Tungsten's names where it has them, and the problems found in them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

from connector.errors import escaped
from connector.log.epochs.load_pause import LoadPause
from connector.log.transaction.position import Intent

NO_APPLIER: Final = "no applier has a session with the target: start `thl apply`"


class ServiceState(StrEnum):
    """The state of producer or applier, as seen from outside."""

    ONLINE = "ONLINE"
    LOADING = "GOING-ONLINE:SNAPSHOT"
    BEHIND = "ONLINE:BEHIND"
    OFFLINE = "OFFLINE"
    STOPPING = "GOING-OFFLINE"
    NONE = "NONE"
    UNKNOWN = "UNKNOWN"


class End(StrEnum):
    """An end of a service that a status is about."""

    PRODUCER = "producer"
    TARGET = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStatus:
    """The producer's numbers, from Kafka and the source; None: unknown.

    Args:
        state: ONLINE while a replica with source.server_id reads the source's binary log.
        log_id: the ID of the log.
        latest_epoch_number: the newest epoch.
        restarts: number of times that a producer went online, or read an event again, after the first time.
        minimum_stored_seqno, maximum_stored_seqno: the first and last event of the log; where Kafka has no event any
            more, the first is the next one.
        last_event_id: the event ID of the last finished event.
        resume: the position at which the producer would resume, file:offset.
        current_event_id: the end of the source's binary log.
        events_behind: transactions of the source that are not in the log; without GTIDs unknown, or 0.
        seconds_behind: age of the last finished event; 0 if no transaction is missing.
        unfinished: true if the log ends in an unfinished event.
        prepared: number of prepared XA transactions.
        seconds_until_purge: minimum time until the source purges the file that is needed next; None: never, or unknown.
        load_pause: the reason for which tables that are being loaded have to wait, as the source shows it; None: there
            is none, or nothing is loaded.
        offline_requested_by: the user who asked it to go offline.
        offline_reason: the given reason.
        waits_for: the replicas of publish.wait_for, and the number of transactions that each has not executed yet.
        semi_sync: with source.semi_sync ON while commits on the source wait until Kafka has them, OFF while they do
            not; "" without it, or if the source does not answer.
    """

    state: ServiceState
    log_id: str = ""
    latest_epoch_number: int = 0
    restarts: int = 0
    minimum_stored_seqno: int = -1
    maximum_stored_seqno: int = -1
    last_event_id: str = ""
    resume: str = ""
    current_event_id: str | None = None
    events_behind: int | None = None
    seconds_behind: float | None = None
    unfinished: bool = False
    prepared: int = 0
    seconds_until_purge: float | None = None
    load_pause: LoadPause | None = None
    offline_requested_by: str = ""
    offline_reason: str = ""
    waits_for: tuple[str, ...] = ()
    semi_sync: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplierStatus:
    """The applier's numbers, from the target's position and the log.

    Args:
        state: ONLINE if every event is applied, OFFLINE after a request, or while no applier has a session with the
            target. Whether one runs is not known of SQLite and DuckDB, which have no sessions.
        applied_last_seqno, applied_last_event_id, applied_last_epoch: the last applied event.
        applied_latency: seconds from that event's commit on the source to its commit on the target.
        relative_latency: seconds since that event's commit on the source.
        events_behind: events of the log that are not applied yet.
        seconds_behind: the relative latency; 0 if every event is applied.
        catch_up_seconds: estimated seconds until every event is applied; None: unknown or never.
        consistent: false during a load, while events are applied again, and while several writers commit.
        inconsistent_because: the reasons for which readers may see what the source never showed: channels, load,
            rewind, quarantine, skipped. The last two are about some tables, and leave `consistent` true.
        channels: the last seqno that each of several writers has committed, -1 before its first.
        open_intent: the commit of several writers that is not complete at the moment.
        restarts: number of claims of the target after the first one.
        offline_requested_by: the user who asked it to go offline.
        offline_reason: the given reason.
        inconsistent_tables: tables that may differ from the source's, each with seqno and reason.
        excluded_tables: tables that are not applied, each with seqno, user and reason.
        loading_tables: tables that are being loaded, each with the seqno and the time of the load's beginning.
    """

    state: ServiceState
    applied_last_seqno: int = -1
    applied_last_event_id: str = ""
    applied_last_epoch: int = 0
    applied_latency: float | None = None
    relative_latency: float | None = None
    events_behind: int | None = None
    seconds_behind: float | None = None
    catch_up_seconds: float | None = None
    consistent: bool = False
    inconsistent_because: tuple[str, ...] = ()
    channels: tuple[int, ...] = ()
    open_intent: Intent | None = None
    restarts: int = 0
    offline_requested_by: str = ""
    offline_reason: str = ""
    inconsistent_tables: tuple[str, ...] = ()
    excluded_tables: tuple[str, ...] = ()
    loading_tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """A fact that needs attention.

    Args:
        text: what it is.
        remedy: what to do about it; "" if the text says it, or nothing is known.
    """

    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a service.

    Args:
        service: name of the service.
        producer, applier: the two ends.
        problems: servers that did not answer, and exceeded limits; empty if there is none.
        ends: the ends that are shown.
    """

    service: str
    producer: ProducerStatus
    applier: ApplierStatus
    problems: tuple[Problem, ...] = ()
    ends: frozenset[End] = frozenset(End)

    @property
    def shown(self) -> dict[str, ProducerStatus | ApplierStatus]:
        """The shown ends by their titles."""
        found: dict[str, ProducerStatus | ApplierStatus] = {}
        if End.PRODUCER in self.ends:
            found["producer"] = self.producer
        if End.TARGET in self.ends:
            found["applier"] = self.applier
        return found


@dataclass(frozen=True, slots=True)
class LagLimits:
    """The limits beyond which a number is a problem.

    Args:
        seconds_behind: maximum for either end.
        seconds_until_purge: minimum for the source.
    """

    seconds_behind: float = 60.0
    seconds_until_purge: float = 3600.0


def problems_of(producer: ProducerStatus, applier: ApplierStatus, limits: LagLimits) -> list[Problem]:
    """Return the problems: exceeded limits, and states that need attention."""
    found: list[Problem] = []

    def add(text: str, remedy: str = "") -> None:
        found.append(Problem(text, remedy))

    if producer.state is ServiceState.NONE:
        add("there is no log: start `thl produce`, or correct `service`", "thl check says whether all is set up")
    if producer.state is ServiceState.OFFLINE:
        add(
            "no producer reads the source's binary log",
            "start `thl produce`; the last line and the exit code of the one before tell why it ended",
        )
    if applier.state is ServiceState.OFFLINE and not applier.offline_requested_by:
        add(NO_APPLIER, "the last line and the exit code of the one before tell why it ended")
    for name, end, remedy in (
        ("producer", producer, "thl info --source shows how far it has read; docs/performance.md has its rates"),
        ("applier", applier, "if it runs, wait until it has caught up; target.writers gives it several connections"),
    ):
        if (end.seconds_behind or 0) > limits.seconds_behind:
            events = "an unknown number of" if end.events_behind is None else end.events_behind
            add(f"the {name} is {end.seconds_behind:.0f} s behind ({events} events)", remedy)
    left = producer.seconds_until_purge
    if left is not None and left < limits.seconds_until_purge:
        add(
            f"the source may purge the file that the producer needs next in {max(left, 0):.0f} s",
            "set binlog_expire_logs_seconds higher on the source, or start `thl archive`",
        )
    if producer.load_pause is not None and not producer.load_pause.ordinary:
        add(f"no round of a load begins: {producer.load_pause.why}", "thl load --status has the remedy")
    known = applier.state not in {ServiceState.NONE, ServiceState.UNKNOWN}
    if known and applier.applied_last_seqno + 1 < producer.minimum_stored_seqno:
        add(
            f"Kafka no longer has event {applier.applied_last_seqno + 1}, which the target needs next; "
            + (
                "it has none any more"
                if producer.minimum_stored_seqno > producer.maximum_stored_seqno >= 0
                else f"its first is {producer.minimum_stored_seqno}"
            ),
            "begin the target again with a load, and keep events longer: retention.ms of the topic",
        )
    for what, tables, remedy in (
        ("may differ", applier.inconsistent_tables, "thl verify --repair"),
        ("is not applied", applier.excluded_tables, "correct the target, then thl load TABLE"),
        ("is being loaded", applier.loading_tables, "thl load --status shows how far it is"),
    ):
        for table in tables:
            add(f"table {what}: {table}", remedy)
    if applier.state in {ServiceState.NONE, ServiceState.LOADING}:
        add("the target is not consistent yet")
    return found


def as_object(status: Status) -> dict[str, object]:
    """Return the status for JSON, with names spelled as Tungsten's."""
    return {
        "serviceName": status.service,
        **{
            title: {name: _as_json(value) for name, value in _named(end).items()} for title, end in status.shown.items()
        },
        "problems": [problem.text for problem in status.problems],
    }


def as_text(status: Status) -> str:
    """Return the status for people: a name and a value per line."""
    lines = [_line("serviceName", status.service)]
    for title, end in status.shown.items():
        lines += ["", title, *(_line(name, value) for name, value in _named(end).items())]
    for problem in status.problems:
        lines.append(f"problem: {escaped(problem.text)}")
        lines += [f"  remedy: {escaped(problem.remedy)}"] * bool(problem.remedy)
    return "\n".join(lines)


def _named(end: ProducerStatus | ApplierStatus) -> dict[str, object]:
    return {_spelling(item.name): getattr(end, item.name) for item in fields(end)}


def _as_json(value: object) -> object:
    if isinstance(value, Intent):
        return {
            "firstSeqno": value.first,
            "lastSeqno": value.last,
            "epoch": value.epoch,
            "writers": value.writers,
            "committed": sorted(value.committed),
        }
    if isinstance(value, LoadPause):
        return value.as_object()
    return value


def _spelling(name: str) -> str:
    first, *rest = name.replace("stored_seqno", "stored_seq_no").split("_")
    return first + "".join(part.capitalize() for part in rest)


def _line(name: str, value: object) -> str:
    if isinstance(value, float):
        value = f"{value:.3f}"
    elif isinstance(value, tuple):
        value = ", ".join(map(str, value))
    return escaped(f"{name:<22}: {'-' if value is None or value == '' else value}")
