"""Appliers read any partition by any amount, and commit; each may die or be overtaken between any two steps of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from connector.errors import (
    BrokerUnavailable,
    ConnectorError,
    EventsDeleted,
    Fenced,
    HistoriesDiffer,
    TargetUnavailable,
)
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.rules import Rule
from tests.unit.log.model.service import Service
from tests.unit.log.model.simulation.applier import Applier
from tests.unit.log.model.simulation.relay import Relay
from tests.unit.log.model.simulation.scenario import rule


def start_applier(service: Service, **options: Any) -> bool:
    """Start one, of another number of writers than the last.

    Returns:
        False: it has to wait for writers of an older one. The next time the server has ended their sessions, which are
        idle within a transaction.
    """
    writers = 1 + service.target.token % service.most_writers
    try:
        applier = Applier(service.kafka, service.target, writers=writers, relay=_relay(service), **options)
    except TargetUnavailable:
        if service.waited:
            service.target.end_idle()
        service.waited = not service.waited
        return False
    service.appliers.append(applier)
    return True


def _relay(service: Service) -> Relay | None:
    """Of the host on which no applier runs."""
    if service.trouble != "relay":
        return None
    if any(applier.relay is service.relays[service.host] for applier in service.appliers):
        service.host = 1 - service.host
    return service.relays[service.host]


def end_applier(service: Service, applier: Applier) -> None:
    applier.die()
    if applier in service.appliers:
        service.appliers.remove(applier)


def applier_goes_on(
    service: Service, which: int, reads: list[tuple[int, int]], commits: int, steps: int | None
) -> None:
    """It reads, and commits the first few events that are complete, or takes some steps of that."""
    if not service.appliers and not start_applier(service):
        return
    applier = service.appliers[which % len(service.appliers)]

    def run() -> None:
        for number, most in reads if not applier.busy else ():
            if (partition := number % (service.partitions + 1)) < service.partitions:
                applier.read(partition, most)
            else:
                applier.read_together(most)
        applier.commit(commits, steps)

    if guarded(service, applier, run) and applier.done:
        service.appliers[service.appliers.index(applier)] = applier.next()


def guarded(service: Service, applier: Applier, work: Callable[[], None]) -> bool:
    """Let an applier work; return False if it ended instead.

    Raises:
        ConnectorError: it ended in an error that nothing explains.
    """
    try:
        work()
    except Fenced:
        assert applier.token != service.target.token, "the newest applier is fenced"
    except BrokerUnavailable:
        service.kafka.tell_all()
    except TargetUnavailable:
        pass
    except ConnectorError as error:
        no_log_yet = not service.truth.log_id
        if not no_log_yet:
            _is_true(service, applier, error)
        if not no_log_yet and not service.explained("applier", error):
            raise
    else:
        return True
    end_applier(service, applier)
    return False


def _is_true(service: Service, applier: Applier, error: ConnectorError) -> None:
    """Hold a refusal for what retention has deleted to be true: its remedy is to fill the target again."""
    at = min(service.target.position.seqno, applier.position.seqno)  # it may have gone back
    empty = isinstance(error, HistoriesDiffer) and at == NO_SEQNO
    begins_within = error.where.get("rule") is Rule.FRAGMENT_MISSING and not applier.goes_back
    if service.trouble == "retention" and (isinstance(error, EventsDeleted) or empty or begins_within):
        deleted = service.truth.is_deleted_after(at, open_too=bool(service.producers))
        assert deleted, f"an applier is refused for what retention has not deleted: {error}"


def operator_starts_an_applier(service: Service, what: str, number: int) -> None:
    """With an event to leave out, which is still to come; or with one to begin at again; or one to go back to."""
    if len(service.appliers) > 1:
        return
    at = service.target.position
    if what == "skip":
        start_applier(service, skips={at.seqno + 1 + number % 3})
    elif what == "undo" and at.seqno > number:
        start_applier(service, undo=Seqno(at.seqno - 1 - number))
    elif what == "rewind" and at.seqno != NO_SEQNO:
        start_applier(service, first=Seqno(max(0, at.seqno - number)))


@rule(
    lambda rng: (rng.between(1, 6), rng.between(1, 6), rng.random() < 0.7, rng.one_of((None, None, 0, 1))),
    when=lambda service: service.most_writers > 1 and service.truth.events,
)
def applier_stops_within_a_commit(
    service: Service, most: int, steps: int, dies: bool, undone: int | None = None
) -> None:
    """The newest one, perhaps one that has undone something first; it dies, or goes on later."""
    if undone is not None:
        operator_starts_an_applier(service, "undo", undone)
    count = service.partitions
    reads = [(count, 7)] * 3 if most % 2 else [(number, 20) for number in range(count)]  # by tasks, or one by one
    applier_goes_on(service, -1, reads, most, steps)
    if dies and service.appliers:
        end_applier(service, service.appliers[-1])


@rule(lambda rng: (rng.below(2),), when=lambda service: service.appliers)
def reader_reads_by_snapshot(service: Service, which: int) -> None:
    """An applier exports what its target shows at any moment, whatever it or another one is doing."""
    applier, target = service.appliers[which % len(service.appliers)], service.target
    seen = target.export(applier.token)
    if seen is not None and target.log_id == service.truth.log_id:
        assert seen == service.truth.whole(target), "a reader by snapshot sees a part of a commit"


@rule(lambda rng: (rng.below(2),), when=lambda service: service.target.intent)
def operator_changes_a_table(service: Service, table: int) -> None:
    """So that it may not be divided any more, or may be."""
    service.target.undivided ^= {table}
