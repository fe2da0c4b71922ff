"""When a Kafka transaction ends.

At once when nothing waits: an event that comes alone is visible after one commit's time. While work waits, after
`commit_ms`, or after a few times what a commit takes here, so that a slow broker spends its time on data and not on
commits. Always at `commit_bytes`, within a huge event too.
"""

from __future__ import annotations

from typing import Final

DATA_PER_COMMIT: Final = 4.0  # seconds of sending for each second of committing, while work waits


class Pacing:
    """Decides, and learns how long commits take.

    Args:
        commit_bytes, commit_ms: see `connector.config.Publish`.
    """

    def __init__(self, commit_bytes: int, commit_ms: int) -> None:
        self._bytes = commit_bytes
        self._seconds = commit_ms / 1000
        self._commit_seconds = 0.0

    def due(self, size: int, age: float, *, waiting: bool) -> bool:
        """Whether to end the transaction now.

        Args:
            size: bytes sent in it.
            age: seconds since its first message.
            waiting: whether there is more to send already.
        """
        if not waiting or size >= self._bytes:
            return True
        return age >= max(self._seconds, DATA_PER_COMMIT * self._commit_seconds)

    def committed(self, seconds: float) -> None:
        """A commit took this long."""
        self._commit_seconds = 0.8 * self._commit_seconds + 0.2 * seconds
