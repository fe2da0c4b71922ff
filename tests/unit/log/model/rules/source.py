"""The source executes transactions; its connections break; it crashes, or another server takes its place."""

from __future__ import annotations

from tests.unit.log.model.rules.applier import applier_goes_on, end_applier
from tests.unit.log.model.rules.producer import producer_goes_on
from tests.unit.log.model.service import Service
from tests.unit.log.model.simulation.acts import Transactions, XaSteps, transactions
from tests.unit.log.model.simulation.scenario import rule
from tests.unit.log.model.troubles import FORKS


def source_executes(service: Service, transactions: Transactions) -> None:
    for content, size, schema, filtered in transactions:
        service.source.execute(content, size, schema, filtered=filtered)


def source_prepares_and_decides(service: Service, steps: XaSteps) -> None:
    """XA transactions: each is prepared, and with the next step of its xid committed or rolled back."""
    for xid, commits, (content, size, schema, filtered) in steps:
        service.source.xa(xid, content, size, schema, filtered=filtered, commits=commits)


@rule(when=lambda service: any(not producer.stream_broke for producer in service.producers))
def source_connection_breaks(service: Service) -> None:
    for producer in service.producers:
        producer.stream_broke = True


@rule(
    lambda rng: (rng.below(4), [rng.below(2) for _ in range(rng.below(4))]),
    trouble="source crash",
    when=lambda service: service.source.log,
)
def source_crashes(service: Service, lost: int, content: list[int]) -> None:
    """It loses its last transactions, and may have executed others when a producer connects again."""
    service.happened = True
    service.source.crash(min(lost, len(service.source.log)))
    for one in content:
        service.source.execute(one, 1, "shop", filtered=False)
    source_connection_breaks(service)


@rule(lambda rng: (rng.below(21),), trouble="failover", when=lambda service: service.source.log)
def source_fails_over(service: Service, lacking: int) -> None:
    """A replica takes its place, in which one transaction may be missing, the last or any other."""
    service.happened = True
    service.source.fail_over(lacking)
    source_connection_breaks(service)


@rule(
    lambda rng: (
        rng.below(5),
        transactions(rng, rng.between(1, 2)),
        rng.random() < 0.5,
        rng.one_of((None, 2, 3, 4, 5)),
    ),
    trouble=FORKS,
    when=lambda service: service.source.log,
)
def source_fails_over_to_a_replica_that_lagged(
    service: Service, lost: int, transactions: Transactions, applied: bool, steps: int | None
) -> None:
    """Its operator accepts that the log goes on without what is lost.

    Mostly an applier has applied that already, which would be rare if it were left to chance.
    """
    if applied:
        producer_goes_on(service, 0, 40)
        service.kafka.tell_all()
        applier_goes_on(service, 0, [(number, 20) for number in range(service.partitions)], 100, steps)
    for applier in list(service.appliers) if steps else ():
        end_applier(service, applier)
    service.happened = True
    service.source.fail_over_lagging(min(lost, len(service.source.log)))
    source_executes(service, transactions)
    source_connection_breaks(service)


@rule(
    lambda rng: (rng.below(9),),
    trouble="source lost",
    when=lambda service: not service.happened and service.source.log,
)
def source_is_lost(service: Service, lost: int) -> None:
    """Its disk is gone; a replica takes its place that had not received its last transactions."""
    service.happened = True
    service.source.fail_over_lagging(min(lost, len(service.source.log)))
    source_connection_breaks(service)
