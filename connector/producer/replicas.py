"""Delays publication until the replicas of `publish.wait_for` have the transactions, so that none is ever trapped.

One query asks for all transactions of an item of work. The executed GTIDs of a replica are remembered, so that only
newer ones are queried. A replica that does not answer or lags stops publication meanwhile. Transactions that the server
at the source's address no longer has, because it is another server now, are never published.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import Final

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from connector import metrics
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import SourceUnavailable
from connector.log.gtid.source_gtids import lacking
from connector.mysql.server.connection import session
from connector.mysql.server.replica import ROUND, Replica
from connector.mysql.server.source_state import gtid_begun
from connector.producer.publish.replica_gate import ReplicaLagging

LOG: Final = logging.getLogger(__name__)
WARN_AFTER: Final = 5.0  # seconds: a shorter wait is normal
LONGEST_WAIT: Final = 5.0  # seconds between attempts to reach a replica
POLL: Final = 0.1  # seconds between two checks for a stop
SOURCE_CHECK: Final = 10.0  # seconds between two checks that the source still has the waiting transactions


class Replicas:
    """Implements `connector.producer.publish.replica_gate.ReplicaGate`.

    Args:
        config: the service, its source, and the replicas.
        stop: set to stop the producer.
        clock: the clock.
    """

    def __init__(self, config: Config, stop: Event, clock: Clock) -> None:
        self._service = config.service
        self._source = config.source
        self._source_checked = 0.0
        self._replicas = [Replica(url.get_secret_value(), config.source) for url in config.publish.wait_for]
        self._stop = stop
        self._clock = clock
        for replica in self._replicas:
            metrics.replica_lagging_since.labels(self._service, replica.name).set(0)

    def has(self, gtids: str) -> bool:
        """See `ReplicaGate`."""
        return all(replica.has(gtids) for replica in self._replicas)

    def wait(self, gtids: str, given_up: Callable[[], bool]) -> None:
        """See `ReplicaGate`."""

        def over() -> bool:
            return self._stop.is_set() or given_up()

        for replica in self._replicas:
            if not replica.has(gtids):
                self._wait(replica, gtids, over)

    def close(self) -> None:
        """Close the sessions. May be repeated."""
        for replica in self._replicas:
            replica.close()

    def _wait(self, replica: Replica, gtids: str, over: Callable[[], bool]) -> None:
        since, began, warned = self._clock.now() / 1e6, self._clock.monotonic(), False
        fields = {"service": self._service, "replica": replica.name}
        metrics.replica_lagging_since.labels(self._service, replica.name).set(since)
        try:
            while True:
                asked = self._clock.monotonic()
                if self._ask(replica, gtids, over):
                    break
                self._check_source(gtids)
                now = self._clock.monotonic()
                if not warned and now - began >= WARN_AFTER:
                    warned = True
                    missing = replica.missing(gtids)
                    LOG.warning(
                        "publication waits for a replica that lags",
                        extra=fields | {"lacks": missing and missing.count(), "gtids": missing, "since": since},
                    )
                self._pause(ROUND - (now - asked), over)
        finally:
            metrics.replica_lagging_since.labels(self._service, replica.name).set(0)
        if warned:
            LOG.info("publication continues", extra=fields | {"seconds": round(self._clock.monotonic() - began, 1)})

    def _check_source(self, gtids: str) -> None:
        """Ask the source from time to time, and give up if it has lost the waiting transactions."""
        now = self._clock.monotonic()
        if now - self._source_checked < SOURCE_CHECK:
            return
        self._source_checked = now
        try:
            with session(self._source) as connection:
                executed = gtid_begun(connection)
        except SourceUnavailable as error:
            LOG.info(
                "the source cannot be asked about waiting transactions", extra={"service": self._service, "why": error}
            )
            return
        if executed is not None and lacking(gtids, executed):
            raise ReplicaLagging

    def _ask(self, replica: Replica, gtids: str, over: Callable[[], bool]) -> bool:
        """Ask the replica until it answers."""

        def warn(state: RetryCallState) -> None:
            why = state.outcome.exception() if state.outcome else None
            fields = {"service": self._service, "replica": replica.name, "attempt": state.attempt_number, "why": why}
            LOG.warning("publication waits for a replica that does not answer", extra=fields)
            self._check_source(gtids)

        attempts = Retrying(
            retry=retry_if_exception_type(SourceUnavailable),
            wait=wait_random_exponential(multiplier=0.2, max=LONGEST_WAIT),
            before_sleep=warn,
            sleep=lambda seconds: self._pause(seconds, over),
            reraise=True,
        )
        return attempts(replica.ask, gtids)

    def _pause(self, seconds: float, over: Callable[[], bool]) -> None:
        until = self._clock.monotonic() + seconds
        while not over():
            left = until - self._clock.monotonic()
            if left <= 0:
                return
            self._stop.wait(min(left, POLL))
        raise ReplicaLagging
