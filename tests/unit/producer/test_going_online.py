"""The epochs that a process began, and the sizes of what it publishes."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import Any, Self

import pytest

from connector.clock import SystemClock
from connector.config.kafka import LEAST_MESSAGE, Kafka
from connector.config.model import Config
from connector.errors import BrokerUnavailable, Fenced
from connector.log.epochs.control import ControlState, EpochRecord
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.batch import Statement, TransactionBatch
from connector.log.transaction.position import SourcePosition
from connector.log.writing.online import OnlinePlan, SourceFound, TailFound, decide
from connector.producer import ownership as ownership_module
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.producer.going_online import GoingOnline, _write_epoch
from connector.producer.ownership import EpochOwnership
from connector.producer.publish.publisher import Publisher
from connector.schema import framing
from tests.support import encoding as making
from tests.unit.producer.test_replica_gate import CONFIG
from tests.unit.producer.test_replica_gate import Kafka as Remembering

FACTS = SourceFound(
    source_id="db:1",
    server_uuid="u",
    now=0,
    log_id=LogId("a" * 32),
    start=SourcePosition("mysql-bin.000002", 5000),
    gtid_set=None,
)


def a_plan() -> OnlinePlan:
    return decide(ControlState(None, None, ()), None, {0: TailFound()}, FACTS)


class Uncertain(Remembering):
    """Brokers whose answer to a commit is lost."""

    def commit(self) -> None:
        super().commit()
        raise BrokerUnavailable("no answer")


class Control:
    """The log's control topic."""

    def __init__(self, control: ControlState) -> None:
        self._control = control

    def __call__(self, _: Config, *, high_watermark: bool, role: str) -> Self:
        assert high_watermark
        assert role == "producer"
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def partitions(self, _: str) -> int:
        return 1

    def control(self) -> ControlState:
        return self._control


def test_epoch_of_a_commit_with_an_unknown_outcome_is_owned(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka: Any = Uncertain()
    plan = a_plan()
    assert plan.log is not None
    ownership = EpochOwnership([replace(plan.epoch, epoch=Epoch(0))], plan.log.log_id)
    publisher = Publisher(CONFIG, kafka, SystemClock(), lambda _: None)
    encoder = Encoder(
        service="s", source_id="db:1", partitions=1, limits=Limits(fragment=50, shard=50, message=1 << 20)
    )
    with pytest.raises(BrokerUnavailable):
        _write_epoch(plan, publisher, encoder, ownership)
    assert kafka.committed
    monkeypatch.setattr(ownership_module, "LogReader", Control(plan.control))
    ownership.verify(CONFIG)


@pytest.mark.parametrize(
    ("newest", "fenced"),
    [
        ({}, False),
        ({"started": 8}, True),  # the other producer's commit won, with the same number
        ({"epoch": Epoch(5), "started": 8}, True),
        ({"epoch": Epoch(3), "started": 1}, True),
    ],
)
def test_any_newest_epoch_but_an_own_one_is_fenced(
    newest: dict[str, Any], fenced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = EpochRecord(epoch=Epoch(4), first_seqno=Seqno(0), source_id="h", server_uuid="u", started=7, reason="online")
    control = replace(a_plan().control, epochs=(replace(own, **newest),))
    assert control.log is not None
    monkeypatch.setattr(ownership_module, "LogReader", Control(control))
    ownership = EpochOwnership([own], control.log.log_id)
    if not fenced:
        ownership.verify(CONFIG)
        return
    with pytest.raises(Fenced) as error:
        ownership.verify(CONFIG)
    assert error.value.where["epoch"] == newest.get("epoch", Epoch(4))


def test_fragments_fit_into_messages_of_a_topic_smaller_than_the_fragments() -> None:
    config = Config(service="s", kafka=Kafka(max_message_bytes=LEAST_MESSAGE))
    assert config.publish.fragment_bytes > config.kafka.max_message_bytes
    going = GoingOnline(
        config=config,
        source=SimpleNamespace(),  # type: ignore[arg-type]
        clock=SystemClock(),
        stop=Event(),
        ownership=EpochOwnership(),
        framing=framing(),
    )
    encoder = going._encoder(a_plan(), FACTS)
    encoder.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(0), tails={}, last_barrier=NO_SEQNO))
    changes: list[Any] = [Statement("a", "x" * 1000) for _ in range(200)]
    fragments = encoder.encode(TransactionBatch(making.BEGIN, changes, making.ENDING))
    assert fragments[-1].finished
    assert max(len(one.key) + len(one.value) for one in fragments) < LEAST_MESSAGE
