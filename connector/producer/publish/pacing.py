"""Paces Kafka transactions: decides when one ends, and when the next begins.

A transaction ends at once if the queue is empty, so a single event is visible after one commit. While work waits, it
ends after `commit_ms`, or after a few times the duration of a commit, so that a slow broker spends its time on data and
not on commits. It always ends at `commit_bytes`, also within a huge event.

Kafka ends a transaction in two steps, and a commit returns after the first. A transaction that begins before the second
is refused, and librdkafka tries again 20 ms later (CONCURRENT_TRANSACTIONS, in rdkafka_txnmgr.c). So the next
transaction begins after a pause of about the duration of the first step, a few milliseconds.
"""

from __future__ import annotations

from typing import Final

LONGEST_REST: Final = 0.01  # seconds
DATA_PER_COMMIT: Final = 4.0  # seconds of sending for each second of committing, while work waits


class Pacing:
    """Decides when transactions end and begin, from the measured duration of commits.

    Args:
        commit_bytes: bytes after which a transaction ends (`publish.commit_bytes`).
        commit_ms: milliseconds after which it ends while work waits (`publish.commit_ms`).
    """

    def __init__(self, commit_bytes: int, commit_ms: int) -> None:
        self._bytes = commit_bytes
        self._seconds = commit_ms / 1000
        self._commit_seconds = 0.0

    def due(self, size: int, age: float, *, waiting: bool) -> bool:
        """Return True to end the transaction now.

        Args:
            size: bytes sent in it.
            age: seconds since its first message.
            waiting: true if more work is queued.
        """
        if not waiting or size >= self._bytes:
            return True
        return age >= max(self._seconds, DATA_PER_COMMIT * self._commit_seconds)

    def rest(self, passed: float) -> float:
        """Return the seconds to wait before the next transaction.

        Args:
            passed: seconds since the last one was committed.
        """
        return max(0.0, min(self._commit_seconds, LONGEST_REST) - passed)

    def committed(self, seconds: float) -> None:
        """Record the duration of a commit, in seconds."""
        self._commit_seconds = 0.8 * self._commit_seconds + 0.2 * seconds
