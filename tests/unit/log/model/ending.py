"""The end of a run: everything ends and is started again. All arrives, or an error says why not; nothing is skipped."""

from __future__ import annotations

from connector.errors import Unsupported
from tests.unit.log.model.rules.applier import guarded
from tests.unit.log.model.rules.producer import start_producer, step
from tests.unit.log.model.service import Service
from tests.unit.log.model.simulation.applier import Applier
from tests.unit.log.model.simulation.log_state import read_prepared
from tests.unit.log.model.simulation.target import Target
from tests.unit.log.model.troubles import FORKS, FORKS_REFUSED


class TargetWaits(AssertionError):
    """Raised when an applier reads the log to its end without an error, and its target lacks events of it."""


def end(service: Service) -> None:
    """Let a producer, and an applier of the old target and of an empty one, do all that there is to do."""
    refused = not _publishes_all(service)
    old = service.target
    old.end_idle()
    for target in (old, Target()):
        service.target = target
        _hold_target(service, target, refused=refused)


def _publishes_all(service: Service) -> bool:
    """Return False if the producer refuses to go on, which only the trouble explains."""
    service.producers.clear()
    service.kafka.tell_all()
    producer = start_producer(service, every=2, shard_limit=3)
    while step(service, producer) and not producer.idle:
        pass
    service.kafka.tell_all()
    if producer.idle:
        _hold_log(service)
    elif service.trouble in FORKS:
        refusal = service.refusal
        assert refusal is not None
        # The simulation's producer refuses an XA COMMIT whose XA PREPARE was trapped.
        never_prepared = isinstance(refusal, Unsupported) and "xid" in refusal.where
        may_refuse = refusal.where.get("rule") in FORKS_REFUSED or never_prepared
        assert may_refuse, f"what may be accepted is refused: {refusal}"
    return producer.idle


def _hold_log(service: Service) -> None:
    truth, prepared = service.truth, set(service.source.prepared())
    truth.matches_source()
    assert truth.partitions.rule.by == service.shards_by, "shards are not made as they are to be"
    assert len(truth.live()) == len(service.source.published()), "the producer left something out"
    pending = {one.xid for one in read_prepared(service.kafka).pending}
    # A trapped XA ROLLBACK was only passed over: what it dropped is missed when the new source commits it.
    assert pending == prepared or (service.trouble in FORKS and pending < prepared)


def _hold_target(service: Service, target: Target, *, refused: bool) -> None:
    """Apply to the end.

    Args:
        service: whose applier it is.
        target: of the service, now.
        refused: the producer says what is wrong with the log; an applier that sees only its end cannot.
    """
    truth, rows = service.truth, list(target.rows)
    if _applies_to_the_end(service):
        live = [event for event in truth.live() if event.seqno not in target.lacks]
        if not (refused or (target.rows == live and target.position.consistent)):
            raise TargetWaits
        # Of a first commit that writers have begun the position does not name the log yet.
        assert target.log_id == truth.log_id or not target.rows, "a target of another log is applied to"
        if service.trouble == "source lost":
            _hold_acknowledged(service, target)
    elif target.log_id != truth.log_id:
        assert target.rows == rows, "a target of another log was changed"
    elif service.trouble in FORKS:
        assert truth.is_misled(target), "a target that holds nothing trapped is refused"


def _hold_acknowledged(service: Service, target: Target) -> None:
    there = {event.pieces[0][:2] for event in target.rows}
    there |= {event.pieces[0][:2] for event in service.truth.events if event.seqno in target.lacks}
    for transaction in service.source.told:
        if not transaction.filtered and transaction.does in ("commit all", "commit"):
            assert transaction.pieces[0][:2] in there, "what a client saw committed is lost with the source"


def _applies_to_the_end(service: Service) -> bool:
    """Return False if an applier ends in an error, which only the trouble explains."""
    done = True
    while done:  # a commit of an earlier applier is made whole in an attempt of its own
        applier = Applier(service.kafka, service.target, writers=service.most_writers)
        if not guarded(service, applier, lambda applier=applier: _read_to_the_end(service, applier)):
            return False
        done = applier.done
    return True


def _read_to_the_end(service: Service, applier: Applier) -> None:
    numbers = range(service.partitions)
    while not applier.done and (applier.read_together(6) or sum([applier.read(number, 3) for number in numbers])):
        applier.commit()
    applier.commit()
