"""One run of the model: a service with its source, its Kafka, its targets, and what runs of it at a time."""

from __future__ import annotations

from connector.errors import ConnectorError
from connector.log.format.shard_rule import BY_SCHEMA
from tests.unit.log.model.simulation.applier import Applier
from tests.unit.log.model.simulation.kafka import EVENTS, Kafka
from tests.unit.log.model.simulation.producer import Producer
from tests.unit.log.model.simulation.relay import Relay
from tests.unit.log.model.simulation.source import Source
from tests.unit.log.model.simulation.target import Target
from tests.unit.log.model.simulation.truth import Truth
from tests.unit.log.model.troubles import EXPLAINED


class Service:
    """The state of a run: up to two producers and two appliers at a time, of which each may stand still.

    Args:
        trouble: what may happen beside the ordinary.
    """

    kafka: Kafka
    source: Source
    truth: Truth

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble
        self.happened = False  # the trouble did
        self.target = Target()
        self.producers: list[Producer] = []
        self.appliers: list[Applier] = []
        self.started = 0  # producers, so far
        self.refusal: ConnectorError | None = None  # the error of the newest producer that ended in one
        self.shards_by = BY_SCHEMA  # as the configuration says
        self.filters = 0  # +1 each time the configuration makes other events of the same transactions
        self.lossy = ""  # the topic that loses tails
        self.most_writers = 1  # of an applier
        self.waited = False  # the newest claim did, for writers of an older applier
        self.relays = [Relay(), Relay()]  # of two hosts
        self.host = 0  # of the newest applier

    def begin(self, partitions: int) -> None:
        """Start the servers, with so many partitions of the event topic, and their observer."""
        self.kafka = Kafka(partitions)
        self.source = Source()
        self.truth = Truth(self.kafka, self.source)
        self.kafka.on_commit = self.truth.committed
        self.source.on_told = self.truth.acknowledged

    def explained(self, who: str, error: ConnectorError) -> bool:
        """Return True if the trouble, having happened, may end in this error."""
        return self.happened and isinstance(error, EXPLAINED[self.trouble][who])

    def check(self) -> None:
        """Hold, after every step: the target is the log up to a seqno, and finished events are read once."""
        if self.target.rows and self.target.log_id == self.truth.log_id:
            self.truth.holds(self.target)
        if self.producers or self.appliers:
            self.truth.reads_once()

    @property
    def partitions(self) -> int:
        """Partitions of the event topic."""
        return len(self.kafka.topics[EVENTS])
