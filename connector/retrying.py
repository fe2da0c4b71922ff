"""Tries again what passes: bounded in attempts and time, jittered, told to the operator, ended when we are to stop.

An attempt waits for servers that do not answer, half a minute at a time: so many attempts in a row would take longer
than anybody expects of their number. So there is also a bound on the time.
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
LASTED: Final = 120.0  # seconds; an attempt that took longer was not one to reach a server that is gone

T = TypeVar("T")


class Stopped(Exception):
    """We were asked to stop while waiting for another attempt."""


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
        call: what to do; nothing of a failed attempt may be left by it.
        errors: what is tried again.
        retries: attempts after the first, within `EACH` seconds for each of them.
        service, stage: for the log and the metric.
        stop: set when we are to stop.
        clock: by which the seconds are counted.

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

    def tell(state: RetryCallState) -> None:
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
        before_sleep=tell,
        sleep=wait,
        reraise=True,
    )
    return attempts(attempt)
