"""When a round of loads may begin, by a clock that the test advances."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from prometheus_client import REGISTRY

from connector.config.model import Config
from connector.config.snapshot import InitialLoad
from connector.config.source import Source
from connector.errors import ConnectorError, MissingPrivilege
from connector.log.epochs.load_pause import LoadPause, PauseCause
from connector.log.epochs.loads import LoadRequest, OutstandingLoad
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.producer.loads.gate import LOG_AGAIN_SECONDS, LONGEST_WAIT, POSTPONED, RECHECK, WAIT, RoundGate
from tests.support.clock import Slept

POSITION: Final = PositionRecord(
    finished=None, resume=SourcePosition("b.000001", 4), gtid_set=None, open=None, tails={}
)
LAG: Final = LoadPause(PauseCause.REPLICA_LAG, "the source lags 99 s")
STOPPED: Final = LoadPause(PauseCause.REPLICA_STOPPED, "the source does not replicate", "START REPLICA")
BEHIND: Final = LoadPause(PauseCause.BEHIND, "the stream is behind")


def load(table: str) -> OutstandingLoad:
    return OutstandingLoad(LoadRequest(table=TableName("shop", table), load="a", asked_at=1, asked_by="me"), None)


ONE, OTHER = load("t"), load("u")


@dataclass
class GateBench:
    """A gate, and what its source says."""

    service: str
    pause: LoadPause | ConnectorError | None = None
    clock: Slept = field(default_factory=Slept)
    semi_sync: bool = False
    most: int | None = None

    def __post_init__(self) -> None:
        source = Source(semi_sync=self.semi_sync, snapshot=InitialLoad(max_rows_per_second=self.most))
        asked: Any = self
        self.gate = RoundGate(Config(service=self.service, source=source), asked, self.clock)

    def load_pause(self, position: PositionRecord, newest_commit: int | None) -> LoadPause | None:
        assert (position, newest_commit) == (POSITION, 7)
        if isinstance(self.pause, ConnectorError):
            raise self.pause
        return self.pause

    def opens(self, pause: LoadPause | ConnectorError | None) -> bool:
        """Whether a round may begin, once the gate asks again."""
        self.clock.sleep(max(RECHECK, WAIT))
        assert self.gate.admitted([ONE]) == [ONE]
        self.pause = pause
        return self.gate.opens(POSITION, 7)

    def paused(self, cause: PauseCause) -> float:
        labels = {"service": self.service, "cause": cause.value}
        return REGISTRY.get_sample_value("thl_load_paused_since_seconds", labels) or 0.0


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> GateBench:
    return GateBench(request.node.name.partition("[")[0][:60])


def told(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    return [one.message for one in caplog.records if one.levelno >= level]


def test_round_begins_where_the_source_shows_no_reason_to_wait(
    bench: GateBench, caplog: pytest.LogCaptureFixture
) -> None:
    assert bench.gate.admitted([ONE, OTHER]) == [ONE, OTHER]
    assert bench.opens(None)
    assert not told(caplog)


def test_pause_is_logged_once_with_its_reason_and_so_is_its_end(
    bench: GateBench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "connector")
    for _ in range(5):
        assert not bench.opens(LAG)
        assert bench.gate.admitted([ONE]) == []  # the source is not asked at each turn
    assert bench.paused(PauseCause.REPLICA_LAG) > 0
    assert bench.opens(None)
    assert bench.paused(PauseCause.REPLICA_LAG) == 0
    assert told(caplog) == ["no round of loads begins", "rounds of loads begin again"]
    (warned,) = [vars(one) for one in caplog.records if one.levelno == logging.WARNING]
    assert (warned["service"], warned["cause"], warned["why"]) == (bench.service, "replica_lag", LAG.why)


def test_lag_around_its_limit_does_not_fill_the_log(bench: GateBench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "connector")
    for _ in range(20):
        bench.opens(LAG)
        bench.opens(None)
    assert told(caplog) == ["no round of loads begins", "rounds of loads begin again"]
    bench.clock.sleep(LOG_AGAIN_SECONDS)
    bench.opens(LAG)
    assert told(caplog)[2:] == ["no round of loads begins"]


def test_another_cause_is_logged_though_the_first_one_was(bench: GateBench, caplog: pytest.LogCaptureFixture) -> None:
    bench.opens(LAG)
    bench.opens(STOPPED)
    assert [vars(one)["cause"] for one in caplog.records] == ["replica_lag", "replica_stopped"]
    assert bench.paused(PauseCause.REPLICA_LAG) == 0 < bench.paused(PauseCause.REPLICA_STOPPED)
    bench.gate.rest()  # the load was cancelled
    assert bench.paused(PauseCause.REPLICA_STOPPED) == 0


def test_stream_that_catches_up_is_no_warning_at_first(bench: GateBench, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(9):
        assert not bench.opens(BEHIND)
    assert not told(caplog)
    bench.opens(BEHIND)
    assert told(caplog) == ["no round of loads could be opened"]


def test_source_that_does_not_say_is_no_reason_to_begin(bench: GateBench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "connector")
    assert not bench.opens(MissingPrivilege("the user lacks a privilege"))
    assert "the user lacks a privilege" in [vars(one).get("why") for one in caplog.records]
    assert bench.opens(None)


def test_refused_lock_is_asked_for_ever_more_rarely_until_a_round_begins(bench: GateBench) -> None:
    waits = []
    for _ in range(12):
        bench.gate.refused("no lock", patient=True)
        before = bench.clock.seconds
        while not bench.gate.admitted([ONE]):
            bench.clock.sleep(WAIT / 2)
        waits.append(bench.clock.seconds - before)
    assert waits[:3] == [WAIT, 2 * WAIT, 4 * WAIT]
    assert waits[-1] == LONGEST_WAIT
    bench.gate.begun()
    bench.gate.refused("no lock", patient=True)
    bench.clock.sleep(WAIT)
    assert bench.gate.admitted([ONE]) == [ONE]


def test_semi_synchronous_source_is_warned_of_at_once(bench: GateBench, caplog: pytest.LogCaptureFixture) -> None:
    GateBench(f"{bench.service}2", semi_sync=True).gate.refused("no lock")
    assert told(caplog) == ["no round of loads could be opened"]
    bench.gate.refused("no lock")
    assert len(told(caplog)) == 1


def test_locked_table_is_left_out_for_a_while(bench: GateBench) -> None:
    bench.gate.postpone(ONE[0].table)
    assert bench.gate.admitted([ONE, OTHER]) == [OTHER]
    bench.clock.sleep(POSTPONED)
    assert bench.gate.admitted([ONE, OTHER]) == [ONE, OTHER]


def test_rows_of_a_round_are_paid_by_a_wait(bench: GateBench) -> None:
    bench.gate.published(500, bench.clock.monotonic())
    assert bench.gate.admitted([ONE]) == [ONE]  # no limit
    limited = GateBench(f"{bench.service}2", most=100)
    limited.gate.published(500, limited.clock.monotonic())
    limited.clock.sleep(4.9)
    assert limited.gate.admitted([ONE]) == []
    limited.clock.sleep(0.1)
    assert limited.gate.admitted([ONE]) == [ONE]
