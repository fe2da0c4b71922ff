"""The end of an initial load, as the publisher is told of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SnapshotCompleted:
    """The initial load has ended with the event before it in the same work.

    Args:
        gtid_set: what it contains.
    """

    gtid_set: str | None
