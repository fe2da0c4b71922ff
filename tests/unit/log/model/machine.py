"""The protocol's model: everything that may happen, in any order, and what must hold whatever happens.

Its rules are what may happen next (`rules`). Each run has at most one kind of trouble beyond the ordinary
(`troubles`), so that an error can be told from the one that the trouble explains.

Held after every step: promises 1 to 5 (docs/internals/promises.md), by an observer of every committed Kafka
transaction, of the targets, of the snapshots that readers get, and of the commits that a semi-synchronous source
reported to its clients (`simulation.truth`). Held whenever a producer goes online: promise 6; whenever an applier has
nothing but its relay: promise 12. Held at the end, when a producer and an applier are let run (`ending`): either
everything arrives, or an error says why it cannot; nothing waits for ever, nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.unit.log.model import ending
from tests.unit.log.model.rules import applier, kafka, producer, relay, source
from tests.unit.log.model.service import Service
from tests.unit.log.model.simulation.acts import Act, Transactions, acts, transactions
from tests.unit.log.model.simulation.scenario import Rule, rule
from tests.unit.log.model.troubles import DIVIDED


@rule(lambda rng: (rng.between(1, 4), rng.one_of((1, 1, 2, 3)), transactions(rng, rng.between(1, 8))))
def begin(service: Service, partitions: int, writers: int, transactions: Transactions) -> None:
    """The source has some transactions, and there is no log of them yet."""
    service.begin(partitions)
    service.most_writers = max(writers, 2 if service.trouble in DIVIDED else 1)
    source.source_executes(service, transactions)


@rule(lambda rng: (acts(rng),))
def life_goes_on(service: Service, acts: list[Act]) -> None:
    """Each does a little, in any order; each may be killed at any moment and is started again."""
    for what, *arguments in acts:
        ACTS[what](service, *arguments)


def process_is_overtaken(service: Service, what: str, which: int) -> None:
    """A second one starts beside the first."""
    if what == "producer" and len(service.producers) == 1:
        producer.start_producer(service, every=1 + service.started % 4, shard_limit=1 + service.started % 5)
    elif what == "applier" and len(service.appliers) == 1:
        applier.start_applier(service)


def process_is_killed(service: Service, what: str, which: int) -> None:
    if what == "producer" and service.producers:
        del service.producers[which % len(service.producers)]
    elif what == "applier" and service.appliers:
        applier.end_applier(service, service.appliers[which % len(service.appliers)])


ACTS: Final[dict[str, Callable[..., None]]] = {
    "source": source.source_executes,
    "xa": source.source_prepares_and_decides,
    "producer": producer.producer_goes_on,
    "applier": applier.applier_goes_on,
    "broker": kafka.marker_arrives,
    "overtake": process_is_overtaken,
    "kill": process_is_killed,
    "operator": applier.operator_starts_an_applier,
}
RULES: Final[tuple[Rule, ...]] = tuple(
    function.rule
    for function in (
        begin,
        life_goes_on,
        source.source_connection_breaks,
        source.source_crashes,
        source.source_fails_over,
        source.source_fails_over_to_a_replica_that_lagged,
        source.source_is_lost,
        producer.filters_change,
        producer.shards_change,
        kafka.topic_is_compacted,
        kafka.retention_deletes,
        kafka.partition_loses_its_tail,
        kafka.tail_is_lost_under_a_running_producer,
        kafka.topics_are_recreated,
        kafka.log_is_rebuilt,
        applier.applier_stops_within_a_commit,
        applier.reader_reads_by_snapshot,
        applier.operator_changes_a_table,
        relay.brokers_are_gone,
    )
)
"""The first begins a run, the second goes on with it; the others happen between."""


class ProtocolModel:
    """The rules on a service of their own: the interface for `simulation.scenario`."""

    rules = RULES

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble
        self.service = Service(trouble)

    def check(self) -> None:
        """See `Service.check`."""
        self.service.check()

    def end(self) -> None:
        """See `ending`."""
        ending.end(self.service)
