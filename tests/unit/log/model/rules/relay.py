"""The brokers are gone, and an applier has nothing but the relay of its host (promise 12)."""

from __future__ import annotations

from connector.errors import HistoriesDiffer, LogDamaged
from tests.unit.log.model.rules.applier import applier_stops_within_a_commit, end_applier
from tests.unit.log.model.rules.producer import producer_goes_on
from tests.unit.log.model.service import Service
from tests.unit.log.model.simulation.applier import Applier
from tests.unit.log.model.simulation.relay import Relay
from tests.unit.log.model.simulation.scenario import rule


@rule(
    lambda rng: (
        rng.one_of((None, None, 0, 1)),
        rng.one_of((None, 0, 1, 2)),
        (rng.one_of(("", "purge", "flip", "cut", "foreign", "other epoch")), rng.between(1, 4)),
        rng.one_of((None, None, 1, 2, 3)),
    ),
    trouble="relay",
    when=lambda service: service.truth.events,
)
def brokers_are_gone(
    service: Service, host: int | None, torn: int | None, damage: tuple[str, int], steps: int | None
) -> None:
    """Within a commit every process ends, on a host its power, too; an applier there makes it whole by its relay.

    Mostly on the host of the applier that began the commit.
    """
    target, (harm, back) = service.target, damage
    _stop_within_a_commit(service, back)
    hosts = [number for number, one in enumerate(service.relays) if one is target.written_by]
    host = host if host is not None or not hosts else hosts[0]
    relay = service.relays[host or 0]
    if torn is not None:
        relay.lose_power(torn)
    if harm == "purge":
        harm = relay.delete(target.upto + 9, target.position)
    relay.damage(harm, back)
    _apply_from_relay(service, relay, harm, writers=back, steps=steps)
    if harm:
        relay.records.clear()  # `relay.dir` names another folder from now on
        target.written_by = None


def _stop_within_a_commit(service: Service, back: int) -> None:
    if service.target.intent is None:
        producer_goes_on(service, 0, 20)
        service.kafka.tell_all()
        applier_stops_within_a_commit(service, 2 + back, 5 + back, dies=True)
    for applier in list(service.appliers):
        end_applier(service, applier)
    service.target.end_idle()


def _apply_from_relay(service: Service, relay: Relay, harm: str, *, writers: int, steps: int | None) -> None:
    target = service.target
    applier = Applier(service.kafka, target, writers=writers, relay=relay)
    before = list(target.rows), target.position, target.intent
    recovery = applier.from_relay(kafka_answers=False)
    try:
        while steps != 0 and next(recovery, None) is not None:
            service.check()
            steps = steps and steps - 1
    except (LogDamaged, HistoriesDiffer):
        assert harm or target.written_by is not relay, "the relay lacks what it is for"
        assert before == (target.rows, target.position, target.intent), "a target without its relay was changed"
    else:
        assert steps == 0 or target.intent is None, "the target is left within a commit"
    applier.die()
