"""The numbers of a service, under Tungsten's names where it has them, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from connector.errors import escaped


class State(StrEnum):
    """Of the producer or the applier, as far as it can be seen from outside."""

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
    """From Kafka's control and position topics and from the source; None where it cannot be told.

    Args:
        state: ONLINE while a replica with our server_id reads the source's binary log.
        log_id: which log this is.
        latest_epoch_number: the newest epoch.
        restarts: how often a producer went online, or went back within an event, after the first time.
        minimum_stored_seqno, maximum_stored_seqno: of the events that Kafka holds.
        last_event_id: of the last finished event.
        resume: where the producer would read on, file:offset.
        current_event_id: the end of the source's binary log.
        events_behind: transactions that the source has and the log has not.
        seconds_behind: how old the last finished event is; 0 when nothing is behind.
        unfinished: an event is begun in the log and not finished.
        prepared: XA transactions that are prepared and not decided.
        seconds_until_purge: at least so long the source keeps what is needed next; None: for ever, or unknown.
        offline_requested_by: who asked that it goes offline.
        offline_reason: why.
        waits_for: the replicas without which nothing is published, and what each lacks of what the source has.
    """

    state: State
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
    offline_requested_by: str = ""
    offline_reason: str = ""
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplierStatus:
    """From the target's own position and the log.

    Args:
        state: ONLINE when nothing is behind, OFFLINE as asked for; else a target does not tell whether one runs.
        applied_last_seqno, applied_last_event_id, applied_last_epoch: the last applied event.
        applied_latency: seconds from that event's commit on the source to its commit on the target.
        relative_latency: seconds since that event's commit on the source.
        events_behind: events that the log has and the target has not.
        seconds_behind: the relative latency; 0 when nothing is behind.
        catch_up_seconds: until nothing is behind, at the rates that were seen just now; None when it does not catch up.
        consistent: false during an initial load.
        restarts: how often the target was claimed after the first time.
        offline_requested_by: who asked that it goes offline.
        offline_reason: why.
        inconsistent_tables: those that are not known to be equal to the source's, since when, and why.
        excluded_tables: those that the applier goes on without, since when, by whom, and why.
    """

    state: State
    applied_last_seqno: int = -1
    applied_last_event_id: str = ""
    applied_last_epoch: int = 0
    applied_latency: float | None = None
    relative_latency: float | None = None
    events_behind: int | None = None
    seconds_behind: float | None = None
    catch_up_seconds: float | None = None
    consistent: bool = False
    restarts: int = 0
    offline_requested_by: str = ""
    offline_reason: str = ""
    inconsistent_tables: tuple[str, ...] = ()
    excluded_tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """A service.

    Args:
        service: its name.
        producer, applier: the two ends.
        problems: what could not be asked, and what is beyond its limit; empty when all is well.
        ends: those that were asked for, and are shown.
    """

    service: str
    producer: ProducerStatus
    applier: ApplierStatus
    problems: tuple[str, ...] = ()
    ends: frozenset[End] = frozenset(End)

    @property
    def shown(self) -> dict[str, ProducerStatus | ApplierStatus]:
        """The ends that were asked for, by their titles."""
        found: dict[str, ProducerStatus | ApplierStatus] = {}
        if End.PRODUCER in self.ends:
            found["producer"] = self.producer
        if End.TARGET in self.ends:
            found["applier"] = self.applier
        return found


@dataclass(frozen=True, slots=True)
class Limits:
    """Beyond these something is wrong.

    Args:
        seconds_behind: of either end.
        seconds_until_purge: less than this is left.
    """

    seconds_behind: float = 60.0
    seconds_until_purge: float = 3600.0


def problems_of(producer: ProducerStatus, applier: ApplierStatus, limits: Limits) -> list[str]:
    """What is beyond its limit."""
    found = []
    if producer.state is State.NONE:
        found.append("there is no log: was `thl produce` started once, and is `service` right?")
    if producer.state is State.OFFLINE:
        found.append("no producer reads the source's binary log")
    for name, end in (("producer", producer), ("applier", applier)):
        if (end.seconds_behind or 0) > limits.seconds_behind:
            found.append(f"the {name} is {end.seconds_behind:.0f} s behind ({end.events_behind} events)")
    left = producer.seconds_until_purge
    if left is not None and left < limits.seconds_until_purge:
        found.append(f"the source may purge what the producer needs in {max(left, 0):.0f} s")
    known = applier.state not in {State.NONE, State.UNKNOWN}
    if known and applier.applied_last_seqno + 1 < producer.minimum_stored_seqno:
        found.append(
            f"Kafka no longer has event {applier.applied_last_seqno + 1}, which the target needs next; "
            f"its first is {producer.minimum_stored_seqno}"
        )
    found += [f"not known to be equal: {table}" for table in applier.inconsistent_tables]
    found += [f"not applied: {table}" for table in applier.excluded_tables]
    if applier.state in {State.NONE, State.LOADING}:
        found.append("the target is not consistent yet")
    return found


def as_object(status: Status) -> dict[str, object]:
    """For JSON, with Tungsten's spelling of names."""
    return {
        "serviceName": status.service,
        **{title: _named(end) for title, end in status.shown.items()},
        "problems": list(status.problems),
    }


def as_text(status: Status) -> str:
    """For people: a name and a value a line."""
    lines = [_line("serviceName", status.service)]
    for title, end in status.shown.items():
        lines += ["", title, *(_line(name, value) for name, value in _named(end).items())]
    return "\n".join([*lines, *(f"problem: {escaped(problem)}" for problem in status.problems)])


def _named(end: ProducerStatus | ApplierStatus) -> dict[str, object]:
    return {_spelling(item.name): getattr(end, item.name) for item in fields(end)}


def _spelling(name: str) -> str:
    first, *rest = name.replace("stored_seqno", "stored_seq_no").split("_")
    return first + "".join(part.capitalize() for part in rest)


def _line(name: str, value: object) -> str:
    if isinstance(value, float):
        value = f"{value:.3f}"
    elif isinstance(value, tuple):
        value = ", ".join(map(str, value))
    return escaped(f"{name:<22}: {'-' if value is None or value == '' else value}")
