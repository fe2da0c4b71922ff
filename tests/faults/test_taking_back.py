"""A producer that lost the brokers goes online again, unless a newer one has taken over."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from threading import Event

import pytest

from connector import failpoints as faults
from connector.clock import SystemClock
from connector.config.model import Config
from connector.errors import BrokerUnavailable, Fenced, LogDamaged
from connector.kafka.log_reader import LogReader
from connector.log.ids import Seqno
from connector.log.transaction.position import PositionRecord
from connector.producer.going_online import GoingOnline
from connector.producer.ownership import EpochOwnership
from connector.schema import framing
from tests.contract.test_publish_topics import config_of
from tests.support.scripted import ScriptedSource, transaction
from tests.support.servers.environment import Broker

pytestmark = pytest.mark.faults


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    return config_of(kafka_broker)


def going_online(config: Config, ownership: EpochOwnership | None = None) -> GoingOnline:
    return GoingOnline(
        config=config,
        source=ScriptedSource(Event(), [transaction(1)]),
        clock=SystemClock(),
        stop=Event(),
        ownership=ownership or EpochOwnership(),
        framing=framing(),
    )


def epochs(config: Config) -> list[int]:
    with LogReader(config) as reader:
        return [record.epoch for record in reader.control().epochs]


def test_an_older_producer_that_goes_online_again_is_fenced_and_the_newer_one_goes_on(config: Config) -> None:
    ownership = EpochOwnership()
    with closing(going_online(config, ownership).run()):
        pass
    with closing(going_online(config).run()) as newer:
        with pytest.raises(Fenced):
            going_online(config, ownership).run()
        newer.publisher.drain()
        newer.publisher.confirm()  # raises when it has been fenced
    assert epochs(config) == [1, 2]


def test_a_newer_producer_that_begins_between_check_and_fencing_is_noticed(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    ownership = EpochOwnership()
    with closing(going_online(config, ownership).run()):
        pass
    verify = EpochOwnership.verify

    def verify_too_early(self: EpochOwnership, config: Config) -> None:
        verify(self, config)
        monkeypatch.undo()
        with closing(going_online(config).run()):
            pass

    monkeypatch.setattr(EpochOwnership, "verify", verify_too_early)
    with pytest.raises(Fenced):
        going_online(config, ownership).run()
    assert epochs(config) == [1, 2]


def test_a_producer_overtaken_while_going_online_is_fenced(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newer one's work looks like damage; the reported reason is the takeover."""
    with closing(going_online(config).run()):
        pass
    with ExitStack() as newer:

        def overtake(name: str) -> None:
            if name == "produce.after_read_log":
                monkeypatch.undo()
                newer.enter_context(closing(going_online(config).run()))
                raise LogDamaged("half of what the newer one writes")

        monkeypatch.setattr(faults, "point", overtake)
        with pytest.raises(Fenced):
            going_online(config).run()
    assert epochs(config) == [1, 2]


def test_damage_without_a_newer_producer_is_reported_as_damage(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    damage = LogDamaged("a real one")

    def damaged(name: str) -> None:
        if name == "produce.after_read_log":
            raise damage

    monkeypatch.setattr(faults, "point", damaged)
    with pytest.raises(LogDamaged) as raised:
        going_online(config).run()
    assert raised.value is damage


def test_an_end_of_the_position_that_is_seen_late_is_a_reason_to_try_again(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(going_online(config).run()):
        pass
    with closing(going_online(config).run()), LogReader(config) as reader:
        position = reader.position()
    assert position is not None
    older = replace(position, tails=dict.fromkeys(position.tails, Seqno(-1)) | {0: Seqno(7)})
    read, shown = LogReader.position, [older, older, older]  # once more at once, and a moment later

    def late(self: LogReader) -> PositionRecord | None:
        return shown.pop() if shown else read(self)

    monkeypatch.setattr(LogReader, "position", late)
    with pytest.raises(BrokerUnavailable, match="another end of the log"):
        going_online(config).run()
    assert not shown
    with closing(going_online(config).run()):
        pass
    monkeypatch.setattr(LogReader, "position", lambda _: older)
    with pytest.raises(LogDamaged):
        going_online(config).run()


def test_a_producer_without_a_newer_one_goes_online_again(config: Config) -> None:
    ownership = EpochOwnership()
    for _ in range(3):
        with closing(going_online(config, ownership).run()):
            pass
    assert epochs(config) == [1, 2, 3]


def test_a_new_process_takes_over(config: Config) -> None:
    for _ in range(2):
        with closing(going_online(config).run()):
            pass
    assert epochs(config) == [1, 2]
