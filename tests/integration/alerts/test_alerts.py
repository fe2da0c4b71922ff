"""Each alert rule of docker/prometheus fires for the trouble that it is about, made for real, and ends with it.

A real Prometheus scrapes the processes of one service as they run. Its rules are those of the file but for their times
(`rules.py`). Before each trouble nothing fires; while it lasts its alerts come to fire, and no others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.integration.alerts import (
    applier_troubles,
    comparison_troubles,
    producer_troubles,
    rules,
    watcher_troubles,
)
from tests.integration.alerts.fleet import Fleet, Servers, running
from tests.integration.alerts.trouble import Trouble
from tests.support.producing import until
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer

TROUBLES = [
    *watcher_troubles.TROUBLES,
    *producer_troubles.TROUBLES,
    *applier_troubles.TROUBLES,
    *comparison_troubles.TROUBLES,  # last: once `thl verify --every` ends, ThlVerifyOld remembers it for a week
]


@pytest.fixture(scope="module")
def fleet(
    mysql_server: SqlServer,
    kafka_broker: Broker,
    postgres_server: DatabaseServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Fleet]:
    servers = Servers(mysql_server, kafka_broker, postgres_server)
    with running(tmp_path_factory.mktemp("fleet"), servers) as made:
        yield made


def test_no_rule_is_left_out() -> None:
    assert {alert for trouble in TROUBLES for alert in trouble.fires} == rules.names()


@pytest.mark.long
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda one: one.name)
def test_alert_fires_for_its_trouble_and_ends_with_it(fleet: Fleet, trouble: Trouble) -> None:
    until(fleet.is_well)
    began = time.time()
    with trouble.made(fleet):
        until(lambda: fleet.firing() >= set(trouble.fires))
        texts = [text for one in fleet.alarms.firing() for text in one["annotations"].values()]
        assert not [text for text in texts if "<error" in text or "<no value>" in text]
    until(fleet.is_well)
    fired = fleet.fired_since(began)
    assert set(trouble.fires) <= fired <= {*trouble.fires, *trouble.besides}
