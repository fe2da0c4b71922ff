"""The position passes transactions that are filtered out, however many there are."""

from __future__ import annotations

from threading import Event

from connector.clock import SystemClock
from connector.config.model import Config
from connector.config.publish import Publish
from connector.kafka.records import position_record
from connector.log.epochs.control import ControlState
from connector.log.ids import LogId
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.position import SourcePosition
from connector.log.writing.online import SourceFound, TailFound, decide
from connector.producer.publish.publisher import Publisher
from tests.support.clock import PATIENCE
from tests.unit.producer.test_replica_gate import PLACE, UUID, Kafka

CONFIG = Config(service="s", publish=Publish(idle_position_seconds=1e-9))
WORKS = 100


class Replica:
    """A gate that opens once all work is queued, so that the queue is not empty in between."""

    def __init__(self) -> None:
        self.queued = Event()

    def has(self, gtids: str) -> bool:
        return self.queued.wait(PATIENCE)


def test_position_advances_while_filtered_transactions_follow_each_other_without_a_pause() -> None:
    kafka, gate = Kafka(), Replica()
    facts = SourceFound(source_id="db:1", server_uuid="u", now=0, log_id=LogId("a" * 32), start=PLACE, gtid_set="")
    plan = decide(ControlState(None, None, ()), None, {0: TailFound()}, facts)
    by = Publisher(CONFIG, kafka, SystemClock(), lambda _: None, gate)  # type: ignore[arg-type]
    by.online(plan, [])
    for number in range(1, WORKS + 1):
        by.put([PositionAdvance(SourcePosition(PLACE.file, PLACE.offset + number), f"{UUID}:{number}")])
    gate.queued.set()
    by.drain()
    gtids = [
        position_record(value or b"").gtid_set for topic, value in kafka.committed if topic == CONFIG.position_topic
    ]
    assert gtids[1] == f"{UUID}:1"  # that of the first of them
    assert gtids[-1] == f"{UUID}:1-{WORKS}"
