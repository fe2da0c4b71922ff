"""How what passes is tried again: bounded, jittered, told to the operator, and ended at once when we are to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import Final, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from connector import metrics
from connector.errors import ConnectorError

LOG: Final = logging.getLogger(__name__)
LONGEST_WAIT: Final = 10.0

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
) -> T:
    """Call until it succeeds.

    Args:
        call: what to do; nothing of a failed attempt may be left by it.
        errors: what is tried again.
        retries: attempts after the first.
        service, stage: for the log and the metric.
        stop: set when we are to stop.

    Raises:
        Stopped: `stop` was set while waiting.
        ConnectorError: the last attempt's.
    """

    def tell(state: RetryCallState) -> None:
        why = state.outcome.exception() if state.outcome else None
        metrics.restarts.labels(service, stage).inc()
        fields = {"service": service, "stage": stage, "attempt": state.attempt_number, "of": retries, "why": why}
        LOG.warning("trying again", extra=fields)

    def wait(seconds: float) -> None:
        if stop.wait(seconds):
            raise Stopped

    attempts = Retrying(
        retry=retry_if_exception_type(errors),
        stop=stop_after_attempt(retries + 1),
        wait=wait_random_exponential(multiplier=0.2, max=LONGEST_WAIT),
        before_sleep=tell,
        sleep=wait,
        reraise=True,
    )
    return attempts(call)
