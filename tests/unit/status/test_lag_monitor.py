"""The lag of an applier as metrics, and its rate in `thl status`."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from threading import Event
from types import SimpleNamespace

import pytest
from prometheus_client import REGISTRY

from connector import metrics
from connector.background import in_background
from connector.clock import SystemClock
from connector.config.model import Config, Metrics
from connector.errors import BrokerUnavailable, TargetUnavailable
from connector.kafka.ends import LogEnds
from connector.log.epochs.fork import Range
from connector.log.ids import Seqno
from connector.status import collect
from connector.status import lag_monitor as module
from connector.targets.position import TargetRow
from tests.support.clock import PATIENCE, Slept

CONFIG = Config(service="watched", metrics=Metrics(port=1))
ROW = TargetRow("a" * 32, 100, 2, "b.000002:90;0", None, True, 0, 50_000_000, 3)


class Reader:
    """A log whose newest event is `newest`; None: its brokers are unavailable."""

    newest: int | None = None
    trapped: tuple[Range, ...] = ()

    def __init__(self, config: Config) -> None:
        assert config.service == "watched"

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def position(self) -> SimpleNamespace:
        if self.newest is None:
            raise BrokerUnavailable("gone")
        return SimpleNamespace(last_finished=self.newest)

    def control(self) -> SimpleNamespace:
        return SimpleNamespace(trapped=self.trapped)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Reader]]:
    monkeypatch.setattr(module, "LogReader", Reader)
    monkeypatch.setattr(module, "EVERY", 0.01)
    metrics.applied_seqno.labels("watched").set(100)
    yield Reader
    Reader.newest, Reader.trapped = None, ()


def sample(name: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"service": "watched"})


def until(name: str, value: float) -> None:
    deadline = time.monotonic() + PATIENCE
    while sample(name) != value:
        assert time.monotonic() < deadline, sample(name)
        time.sleep(0.01)


def test_lag_is_a_metric(reader: type[Reader]) -> None:
    reader.newest = 300
    with module.lag_monitor(CONFIG, SystemClock()):
        until("thl_lag_events", 200)
        metrics.applied_seqno.labels("watched").set(300)
        until("thl_catch_up_seconds", 0)


def test_trapped_events_are_no_lag(reader: type[Reader]) -> None:
    reader.newest = 300
    with module.lag_monitor(CONFIG, SystemClock()):
        until("thl_lag_events", 200)
        reader.trapped = (Range(Seqno(201), Seqno(300)),)
        until("thl_lag_events", 100)
        metrics.applied_seqno.labels("watched").set(200)
        until("thl_lag_events", 0)
        until("thl_catch_up_seconds", 0)


def test_unavailable_brokers_make_lag_unknown_until_they_are_back(reader: type[Reader]) -> None:
    reader.newest = 300
    with module.lag_monitor(CONFIG, SystemClock()):
        until("thl_lag_events", 200)
        reader.newest = None
        deadline = time.monotonic() + PATIENCE
        while not math.isnan(sample("thl_lag_events") or 0.0):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        reader.newest = 400
        until("thl_lag_events", 300)


def test_ending_applier_does_not_wait_for_unavailable_brokers(
    reader: type[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered = Event(), Event()

    def position(_: Reader) -> SimpleNamespace:
        asked.set()
        answered.wait(PATIENCE)
        return SimpleNamespace(last_finished=100)

    monkeypatch.setattr(reader, "position", position)
    monkeypatch.setattr(module, "in_background", partial(in_background, leave=0.1))
    began = time.monotonic()
    with module.lag_monitor(CONFIG, SystemClock()):
        assert asked.wait(PATIENCE)
    answered.set()
    assert time.monotonic() - began < 20


def test_no_metrics_server_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "in_background", lambda *_: pytest.fail("a thread was started"))
    with module.lag_monitor(Config(service="watched"), SystemClock()):
        pass


def watched(monkeypatch: pytest.MonkeyPatch, rate: float) -> float | None:
    """What a target that takes `rate` events a second, a commit each half second, is said to need for 1,000."""
    clock = Slept()

    def row(url: str, service: str) -> TargetRow:
        assert (url, service) == (CONFIG.target.url.get_secret_value(), "watched")
        commits = int(clock.seconds * 2)
        return replace(ROW, seqno=ROW.seqno + int(commits * rate / 2), applied_at=ROW.applied_at + commits * 500_000)

    ends = LogEnds(Seqno(0), Seqno(1100))
    monkeypatch.setattr(collect, "read_position", row)
    monkeypatch.setattr(collect, "log_ends", lambda _: ends)
    return collect._catch_up(CONFIG, ROW, ends, clock)


def test_rate_is_measured_from_commit_to_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    # After a second and two commits 100 of 1,000 are done.
    assert watched(monkeypatch, 100.0) == pytest.approx(9.0)


def test_target_without_progress_is_waited_for_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, 0.0) is None


def test_target_unavailable_meanwhile_gives_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(url: str, service: str) -> TargetRow:
        raise TargetUnavailable(f"{url} {service}")

    monkeypatch.setattr(collect, "read_position", gone)
    assert collect._catch_up(CONFIG, ROW, LogEnds(Seqno(0), Seqno(1100)), Slept()) is None
