"""Retries calls after named errors: bounded in attempts and time, jittered, logged, ended by a stop.

An attempt may wait half a minute for a server that does not answer, so the time is bounded as well as the number.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import Final, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from connector import metrics
from connector.clock import Clock
from connector.errors import ConnectorError

LOG: Final = logging.getLogger(__name__)
LONGEST_WAIT: Final = 10.0
EACH: Final = 10.0  # seconds for each attempt, on average: 30 of them are given up after five minutes
LASTED: Final = 120.0  # seconds: a longer attempt had reached its server, and begins a new count of the time

T = TypeVar("T")


class Stopped(Exception):
    """The stop was set during a wait for the next attempt."""


def retry(
    call: Callable[[], T],
    errors: tuple[type[ConnectorError], ...],
    *,
    retries: int,
    service: str,
    stage: str,
    stop: Event,
    clock: Clock,
) -> T:
    """Call until it succeeds.

    Args:
        call: the attempt; one that fails must leave nothing behind.
        errors: those after which it is tried again.
        retries: attempts after the first, within `EACH` seconds for each of them.
        service, stage: for the log and the metric.
        stop: set from outside to end the retries.
        clock: counts the seconds.

    Raises:
        Stopped: `stop` was set while waiting.
        ConnectorError: the last attempt's.
    """

    begun = give_up = 0.0

    def attempt() -> T:
        nonlocal begun
        begun = clock.monotonic()
        return call()

    def enough(state: RetryCallState) -> bool:
        nonlocal give_up
        now = clock.monotonic()
        if state.attempt_number == 1 or now - begun >= LASTED:
            give_up = now + retries * EACH
        return state.attempt_number > retries or now >= give_up

    def log(state: RetryCallState) -> None:
        why = state.outcome.exception() if state.outcome else None
        metrics.restarts.labels(service, stage).inc()
        fields = {"service": service, "stage": stage, "attempt": state.attempt_number, "of": retries}
        left = round(give_up - clock.monotonic())
        LOG.warning("trying again", extra={**fields, "seconds_left": left, "why": why})

    def wait(seconds: float) -> None:
        if stop.wait(seconds):
            raise Stopped

    attempts = Retrying(
        retry=retry_if_exception_type(errors),
        stop=enough,
        wait=wait_random_exponential(multiplier=0.2, max=LONGEST_WAIT),
        before_sleep=log,
        sleep=wait,
        reraise=True,
    )
    return attempts(attempt)
