"""Producers take one step after another; each may stand still meanwhile, be killed, or be overtaken by another."""

from __future__ import annotations

from connector.errors import BrokerUnavailable, ConnectorError, Fenced
from connector.log.format.shard_rule import BY_SCHEMA, BY_TABLE
from connector.log.ids import LogId
from tests.unit.log.model.service import Service
from tests.unit.log.model.simulation.event_fragments import Settings
from tests.unit.log.model.simulation.producer import Producer
from tests.unit.log.model.simulation.scenario import rule
from tests.unit.log.model.troubles import FORKS


def start_producer(service: Service, every: int, shard_limit: int) -> Producer:
    """Start one with the configuration as it is now; see `Settings`."""
    service.started += 1
    settings = Settings(
        log_id=LogId(f"{service.started:032x}"),
        every=every,
        shard_limit=shard_limit,
        filters=service.filters,
        shards_by=service.shards_by,
        accepts=service.trouble in FORKS,
    )
    producer = Producer(service.kafka, service.source, settings)
    service.producers.append(producer)
    return producer


def producer_goes_on(service: Service, which: int, steps: int) -> None:
    """It takes some steps; then it stands still, as under SIGSTOP, until its next turn."""
    if not service.producers:
        start_producer(service, every=1 + steps % 4, shard_limit=1 + steps % 5)
    producer = service.producers[which % len(service.producers)]
    for _ in range(steps):
        if not step(service, producer) or producer.idle:
            break


def step(service: Service, producer: Producer) -> bool:
    """Take one step; return False if the producer ended instead.

    Raises:
        ConnectorError: it ended in an error that nothing explains.
    """
    try:
        producer.step()
    except Fenced:
        assert producer is not newest_producer(service), "the newest producer is fenced"
    except BrokerUnavailable:
        service.kafka.tell_all()
    except ConnectorError as error:
        service.refusal = error
        if not service.explained("producer", error):
            raise
    else:
        return True
    service.producers.remove(producer)
    return False


def newest_producer(service: Service) -> Producer | None:
    """The producer that is not fenced, if it runs."""
    return next((one for one in service.producers if one.session == service.kafka.session), None)


@rule(trouble="filters")
def filters_change(service: Service) -> None:
    """The next producer makes other events of the source's transactions."""
    service.filters += 1
    service.producers.clear()


@rule(trouble="shards")
def shards_change(service: Service) -> None:
    """The next producer finds shards by another rule, so it begins a version of the partition map."""
    service.shards_by = BY_TABLE if service.shards_by == BY_SCHEMA else BY_SCHEMA
    service.producers.clear()
