"""Markers of a Kafka transaction arrive in one partition before another; topics are compacted, cut or re-created."""

from __future__ import annotations

from tests.unit.log.model.rules.producer import newest_producer, producer_goes_on
from tests.unit.log.model.rules.source import source_executes
from tests.unit.log.model.service import Service
from tests.unit.log.model.simulation.acts import Transactions, transactions
from tests.unit.log.model.simulation.kafka import CONTROL, EVENTS, POSITION, PREPARED
from tests.unit.log.model.simulation.scenario import rule

COMPACTED = (CONTROL, POSITION, PREPARED)


def marker_arrives(service: Service, which: int) -> None:
    service.kafka.tell_one(which)


@rule(
    lambda rng: (rng.one_of(COMPACTED),),
    when=lambda service: any(len(service.kafka.partition(topic).entries) > 12 for topic in COMPACTED),
)
def topic_is_compacted(service: Service, topic: str) -> None:
    service.kafka.compact(topic)


@rule(lambda rng: (rng.below(4), rng.between(1, 30)), trouble="retention")
def retention_deletes(service: Service, number: int, count: int) -> None:
    number %= service.partitions
    service.happened = True
    service.kafka.delete_old(number, service.kafka.partition(EVENTS, number).start + count)


@rule(
    lambda rng: (rng.one_of((EVENTS, EVENTS, *COMPACTED)), rng.below(4), rng.between(1, 9)),
    trouble="tail",
    when=lambda service: service.truth.events,
)
def partition_loses_its_tail(service: Service, topic: str, number: int, count: int) -> None:
    """Of one topic: a log that lost the same transactions everywhere is an older log, and whole."""
    topic = service.lossy = service.lossy or topic
    _lose_tail(service, topic, number, count)


@rule(
    lambda rng: (rng.below(4), rng.between(1, 9), transactions(rng, rng.between(1, 2))),
    trouble="hole",
    when=lambda service: any(service.truth.tails.values()) and newest_producer(service),
)
def tail_is_lost_under_a_running_producer(
    service: Service, number: int, count: int, transactions: Transactions
) -> None:
    """It does not notice; where it writes to that partition again, there is a hole."""
    service.kafka.tell_all()
    producer = newest_producer(service)
    if producer and _lose_tail(service, EVENTS, number, count):
        source_executes(service, transactions)
        producer_goes_on(service, service.producers.index(producer), 40)


def _lose_tail(service: Service, topic: str, number: int, count: int) -> bool:
    """Return True if the trouble has happened by that."""
    lost = service.kafka.lose_tail(topic, number % len(service.kafka.topics[topic]), count)
    if lost:
        service.happened = True
        service.truth.looked_before = service.kafka.session
    return lost


@rule(
    lambda rng: (rng.one_of(((EVENTS,), (CONTROL,), (POSITION,), (PREPARED,), (CONTROL, POSITION))),),
    trouble="anew",
    when=lambda service: not service.happened and service.truth.log_id,
)
def topics_are_recreated(service: Service, topics: tuple[str, ...]) -> None:
    """By an operator who ends the producers first."""
    service.happened = True
    service.producers.clear()
    service.kafka.init_transactions()
    for topic in topics:
        service.kafka.make_anew(topic)


@rule(
    lambda rng: (transactions(rng, rng.between(10, 20)),),
    trouble="rebuilt",
    when=lambda service: not service.happened and service.target.rows,
)
def log_is_rebuilt(service: Service, transactions: Transactions) -> None:
    """The source is filled again and its log begins again; the targets are left as they were."""
    topics_are_recreated(service, (EVENTS, CONTROL, POSITION, PREPARED))
    service.source.make_anew()
    source_executes(service, transactions)
