"""Who has lost the brokers goes online again, but not over a newer one that came meanwhile."""

from __future__ import annotations

from contextlib import closing
from threading import Event

import pytest

from connector import failpoints as faults
from connector.clock import SystemClock
from connector.config.model import Config
from connector.errors import Fenced, LogDamaged
from connector.kafka.log_reader import LogReader
from connector.producer.going_online import OnlineProducer
from connector.producer.ownership import EpochOwnership
from connector.schema import framing
from tests.contract.test_publish_topics import config_of
from tests.support.scripted import ScriptedSource, transaction
from tests.support.servers.environment import Broker

pytestmark = pytest.mark.faults


@pytest.fixture
def config(kafka_broker: Broker) -> Config:
    return config_of(kafka_broker)


def online(config: Config, begun: EpochOwnership) -> OnlineProducer:
    return OnlineProducer(
        config, ScriptedSource(Event(), [transaction(1)]), SystemClock(), Event(), begun, framing=framing()
    )


def epochs(config: Config) -> list[int]:
    with LogReader(config) as reader:
        return [record.epoch for record in reader.control().epochs]


def test_the_older_one_leaves_the_newer_one_alone(config: Config) -> None:
    begun = EpochOwnership()
    with closing(online(config, begun)) as older:
        older.go()
    with closing(online(config, EpochOwnership())) as newer:
        newer.go()
        with closing(online(config, begun)) as again, pytest.raises(Fenced):
            again.go()
        newer.publisher.drain()
        newer.publisher.confirm()  # raises when it has been fenced
    assert epochs(config) == [1, 2]


def test_who_is_overtaken_while_going_online_is_told_so(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the newer one does meanwhile looks like damage; the reason is that it has taken over."""
    with closing(online(config, EpochOwnership())) as first:
        first.go()
    newer = online(config, EpochOwnership())
    older = online(config, EpochOwnership())

    def overtake(name: str) -> None:
        if name == "produce.after_read":
            monkeypatch.undo()
            newer.go()
            raise LogDamaged("half of what the newer one writes")

    monkeypatch.setattr(faults, "point", overtake)
    with closing(newer), closing(older), pytest.raises(Fenced):
        older.go()
    assert epochs(config) == [1, 2]


def test_damage_is_told_where_nobody_overtakes(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(name: str) -> None:
        if name == "produce.after_read":
            raise LogDamaged("a real one")

    monkeypatch.setattr(faults, "point", damaged)
    with closing(online(config, EpochOwnership())) as alone, pytest.raises(LogDamaged, match="a real one"):
        alone.go()


def test_who_lost_them_to_nobody_goes_on(config: Config) -> None:
    begun = EpochOwnership()
    for _ in range(3):
        with closing(online(config, begun)) as producer:
            producer.go()
    assert epochs(config) == [1, 2, 3]


def test_a_process_that_starts_takes_over(config: Config) -> None:
    for _ in range(2):
        with closing(online(config, EpochOwnership())) as producer:
            producer.go()
    assert epochs(config) == [1, 2]
