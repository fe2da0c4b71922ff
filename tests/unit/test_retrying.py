"""Passing failures are retried a bounded number of times, others are raised at once; a stop ends the wait."""

from __future__ import annotations

import gc
import logging
import weakref
from threading import Event

import pytest
from prometheus_client import REGISTRY

from connector import retrying
from connector.clock import SystemClock
from connector.errors import BrokerUnavailable, ConnectorError, Fenced, LogMissing
from connector.retrying import EACH, LASTED, Stopped, retry
from tests.support.clock import Slept

CLOCK = SystemClock()


class Failing:
    """Fails as often as told, then succeeds."""

    def __init__(self, *errors: ConnectorError) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.calls


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "LONGEST_WAIT", 0.001)


def attempt(call: Failing, stop: Event, retries: int = 2) -> int:
    return retry(call, (BrokerUnavailable,), retries=retries, service="s", stage="publish", stop=stop, clock=CLOCK)


def test_retry_succeeds_after_a_passing_failure() -> None:
    assert attempt(Failing(BrokerUnavailable("1"), BrokerUnavailable("2")), Event()) == 3


def test_retry_gives_up_with_the_last_failure() -> None:
    failures = [BrokerUnavailable(str(number)) for number in range(5)]
    call = Failing(*failures)
    with pytest.raises(BrokerUnavailable) as last:
        attempt(call, Event())
    assert last.value is failures[2]
    assert call.calls == 3


@pytest.mark.parametrize(("error", "counted"), [(BrokerUnavailable("gone"), 2), (LogMissing("to come"), 0)])
def test_wait_for_a_log_to_come_is_no_restart(error: ConnectorError, counted: int) -> None:
    labels = {"service": type(error).__name__, "stage": "publish"}
    call = Failing(error, error)
    retry(call, (BrokerUnavailable,), retries=2, **labels, stop=Event(), clock=CLOCK)
    assert call.calls == 3
    assert (REGISTRY.get_sample_value("thl_restarts_total", labels) or 0) == counted


def test_permanent_failure_is_not_retried() -> None:
    call = Failing(Fenced("older"))
    with pytest.raises(Fenced):
        attempt(call, Event())
    assert call.calls == 1


def test_attempt_begins_without_what_the_failed_ones_left(caplog: pytest.LogCaptureFixture) -> None:
    """The collector that runs by itself is off, as good as it is in `thl apply` while little passes."""
    caplog.set_level(logging.ERROR, retrying.LOG.name)  # pytest keeps log records, and these their errors
    left: list[weakref.ref[Failing]] = []

    def call() -> None:
        assert not [one for one in left[:-1] if one() is not None]  # tenacity keeps the last failure
        session = Failing()
        session.errors.append(BrokerUnavailable("of a session", session=session))  # a cycle
        left.append(weakref.ref(session))
        if len(left) < 3:
            raise BrokerUnavailable("it ends")

    gc.disable()
    try:
        retry(call, (BrokerUnavailable,), retries=2, service="s", stage="apply", stop=Event(), clock=CLOCK)
    finally:
        gc.enable()
    assert len(left) == 3


def test_retry_does_not_wait_after_a_stop_request() -> None:
    stop = Event()
    stop.set()
    call = Failing(BrokerUnavailable("1"))
    with pytest.raises(Stopped):
        attempt(call, stop)
    assert call.calls == 1


def test_attempts_that_wait_long_are_given_up_by_time() -> None:
    clock, lasted = Slept(), 3 * EACH

    def call() -> None:
        clock.sleep(lasted)
        raise BrokerUnavailable("it does not answer")

    with pytest.raises(BrokerUnavailable):
        retry(call, (BrokerUnavailable,), retries=30, service="s", stage="publish", stop=Event(), clock=clock)
    assert clock.seconds == lasted + 30 * EACH


def test_attempt_that_reached_the_server_restarts_the_time_limit() -> None:
    clock = Slept()
    lengths = [1.0, LASTED + 30 * EACH, 1.0]

    def call() -> int:
        if not lengths:
            return 1
        clock.sleep(lengths.pop(0))
        raise BrokerUnavailable("it is gone")

    stop = Event()
    assert retry(call, (BrokerUnavailable,), retries=5, service="s", stage="publish", stop=stop, clock=clock) == 1
