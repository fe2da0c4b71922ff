"""One row of the comparison: another program, or a combination of programs, at one workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tests.bench.result import Row
from tests.bench.site import Site
from tests.bench.workload import Backlog


class Unavailable(Exception):
    """Raised if a peer cannot be fetched or cannot run here; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Load:
    """The input of every peer of a run.

    Args:
        place: the servers; the binary log holds the backlog and nothing else of the tables.
        kind: the workload's name, which is also its table's.
        backlog: description of the backlog.
    """

    place: Site
    kind: str
    backlog: Backlog

    @property
    def last_ids(self) -> tuple[int, ...]:
        """Keys of rows of the last transaction of each connection of the load."""
        if self.kind == "bulk":
            return (self.backlog.rows - 1,)
        share = self.backlog.events // 2
        return (share * 3 - 1, share * 6 - 1)


class Peer(Protocol):
    """Measures one program."""

    def __call__(self, load: Load) -> list[Row]:
        """Process the whole backlog once.

        Raises:
            Unavailable: see there.
        """
        ...
