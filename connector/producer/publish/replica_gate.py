"""What has to be elsewhere before it may be published: the seam between the publisher and who knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class ReplicaLagging(Exception):
    """What was put is held, and we wait no longer: it is not published, and nothing behind it."""


class ReplicaGate(Protocol):
    """Knows what is elsewhere. Called by the publisher's thread, and before that has begun by the one that makes it."""

    def has(self, gtids: str) -> bool:
        """Whether all of them are known to be there; asks nobody."""

    def wait(self, gtids: str, given_up: Callable[[], bool]) -> None:
        """Come back when all of them are there.

        No Kafka transaction is open meanwhile: brokers end one that lasts (`transaction.timeout.ms`).

        Args:
            gtids: a set, as the source writes one.
            given_up: whether to wait no longer; looked at often.

        Raises:
            Held: it was given up, or the producer is to stop; or it will never be there.
            PreflightError: whoever is waited for cannot tell.
        """
