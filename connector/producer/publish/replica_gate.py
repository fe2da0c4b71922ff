"""The seam between the publisher and the replicas that must have a transaction before it is published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class ReplicaLagging(Exception):
    """Held transactions are given up: neither they nor any later ones are published."""


class ReplicaGate(Protocol):
    """Knows the transactions that all replicas have. The publisher's thread calls it; before that starts, its maker."""

    def has(self, gtids: str) -> bool:
        """True when all of them are known to be on the replicas; sends no query."""

    def wait(self, gtids: str, given_up: Callable[[], bool]) -> None:
        """Return when all of them are on the replicas.

        No Kafka transaction may be open meanwhile: brokers end a long one (`transaction.timeout.ms`).

        Args:
            gtids: a GTID set, in the source's form.
            given_up: says to wait no longer; called often.

        Raises:
            ReplicaLagging: the wait was given up, the producer is to stop, or the source has lost the transactions.
            PreflightError: a replica cannot say what it has executed.
        """
