"""The interface between the publisher and the replicas that must have a transaction before it is published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class ReplicaLagging(Exception):
    """Raised when the publisher drops transactions that wait for replicas, and publishes no later ones."""


class ReplicaGate(Protocol):
    """Knows the transactions that all replicas have. Called by the publisher's thread, earlier by its owner."""

    def has(self, gtids: str) -> bool:
        """Return True if all replicas are known to have the transactions; sends no query."""

    def wait(self, gtids: str, given_up: Callable[[], bool]) -> None:
        """Wait until all replicas have the transactions.

        No Kafka transaction may be open meanwhile: brokers abort a long one (`transaction.timeout.ms`).

        Args:
            gtids: a GTID set, in the source's form.
            given_up: returns True to end the wait; called often.

        Raises:
            ReplicaLagging: the wait was given up, a stop was requested, or the source has lost the transactions.
            PreflightError: a replica cannot report what it has executed.
        """
