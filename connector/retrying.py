"""Retries calls after named errors, with limits on attempts and time, with jitter and log lines; a stop ends it.

An attempt may wait half a minute for a server that does not answer, so the time is bounded as well as the number.

An attempt that failed leaves its sessions, consumers and streams in cycles, which only Python's garbage collector takes
away. That runs rarely in `thl produce` and `thl apply`, so each attempt begins with a collection.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from threading import Event
from typing import Final, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from connector import metrics
from connector.clock import Clock
from connector.errors import ConnectorError, LogMissing

LOG: Final = logging.getLogger(__name__)
LONGEST_WAIT: Final = 10.0
EACH: Final = 10.0  # seconds per attempt on average: 30 attempts take at most five minutes
LASTED: Final = 120.0  # seconds: a longer attempt had reached its server, and resets the count of the time

T = TypeVar("T")


class Stopped(Exception):
    """Raised when the stop was set during a wait for the next attempt."""


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
    """Call until the call succeeds or the retries are used up.

    Args:
        call: the attempt; after a failure it must be possible to repeat it.
        errors: the errors after which to retry.
        retries: attempts after the first, within `EACH` seconds for each of them.
        service, stage: labels of log lines and of the metric.
        stop: set from outside to end the retries.
        clock: the clock.

    Raises:
        Stopped: `stop` was set while waiting.
        ConnectorError: the error of the last attempt.
    """

    started = give_up = 0.0

    def attempt() -> T:
        nonlocal started
        gc.collect()
        started = clock.monotonic()
        return call()

    def enough(state: RetryCallState) -> bool:
        nonlocal give_up
        now = clock.monotonic()
        if state.attempt_number == 1 or now - started >= LASTED:
            give_up = now + retries * EACH
        return state.attempt_number > retries or now >= give_up

    def log(state: RetryCallState) -> None:
        why = state.outcome.exception() if state.outcome else None
        if not isinstance(why, LogMissing):
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
