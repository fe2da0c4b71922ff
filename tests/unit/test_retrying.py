"""What passes is tried again a bounded number of times; what does not is told at once; a stop ends the waiting."""

from __future__ import annotations

from threading import Event

import pytest

from connector.errors import BrokerUnavailable, ConnectorError, Fenced
from connector.pipeline import retrying
from connector.pipeline.retrying import Stopped, retry


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
    return retry(call, (BrokerUnavailable,), retries=retries, service="s", stage="publish", stop=stop)


def test_it_succeeds_when_the_failure_passes() -> None:
    assert attempt(Failing(BrokerUnavailable("1"), BrokerUnavailable("2")), Event()) == 3


def test_it_gives_up_with_the_last_failure() -> None:
    call = Failing(*(BrokerUnavailable(str(number)) for number in range(5)))
    with pytest.raises(BrokerUnavailable, match="2"):
        attempt(call, Event())
    assert call.calls == 3


def test_what_cannot_pass_is_not_tried_again() -> None:
    call = Failing(Fenced("older"))
    with pytest.raises(Fenced):
        attempt(call, Event())
    assert call.calls == 1


def test_asked_to_stop_it_does_not_wait() -> None:
    stop = Event()
    stop.set()
    call = Failing(BrokerUnavailable("1"))
    with pytest.raises(Stopped):
        attempt(call, stop)
    assert call.calls == 1
