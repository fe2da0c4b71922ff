"""One row of the comparison: a program of others, or a combination of them, at one workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tests.bench.result import Row
from tests.bench.site import Site
from tests.bench.workload import Backlog


class Unavailable(Exception):
    """A peer cannot be had or cannot run here; the message says why."""


@dataclass(frozen=True, slots=True)
class Load:
    """What every peer of a run is given.

    Args:
        place: the servers; the binary log holds the backlog and nothing else of the tables.
        kind: the workload's name, which is also its table's.
        backlog: how much of it.
    """

    place: Site
    kind: str
    backlog: Backlog

    @property
    def last_ids(self) -> tuple[int, ...]:
        """Keys whose rows come with the last transaction of each connection that made the load."""
        if self.kind == "bulk":
            return (self.backlog.rows - 1,)
        share = self.backlog.events // 2
        return (share * 3 - 1, share * 6 - 1)


class Peer(Protocol):
    """A way to measure."""

    def __call__(self, load: Load) -> list[Row]:
        """Take the whole backlog once.

        Raises:
            Unavailable: see there.
        """
        ...
