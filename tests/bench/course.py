"""The course of a run: rows counted over time, and the resources used by then. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.bench.meter import Usage

WARM_ROWS = 500_000  # a JVM runs at half speed until about here
WARM_SHARE = 4  # … but no more than this part of a run is left out


class TooShort(Exception):
    """Raised for a run with too few commits."""


@dataclass(frozen=True, slots=True)
class Look:
    """One observation.

    Args:
        at: seconds.
        rows: counted by the worker since its start.
        used: process → what it used since its start; the servers' since the look before the worker's start.
    """

    at: float
    rows: int
    used: Mapping[str, Usage]


@dataclass(frozen=True, slots=True)
class Course:
    """Observations in order: the first one has rows, the last one has all of them.

    Args:
        looks: see above.
        before: the first rows, which are not what is to be measured.
        parts: the processes of the worker, without servers.
    """

    looks: Sequence[Look]
    before: int = 0
    parts: Collection[str] = ()

    def figures(self) -> dict[str, float]:
        """Rows per second of the whole run and in the steady state, CPU per million rows, memory."""
        first, last = self.looks[0], self.looks[-1]
        warm = self.steady
        return {
            "rows": last.rows - self.before,
            "rows/s": round(rate(warm, last)),
            "whole run rows/s": round(rate(first, last)),
            **{f"CPU s/M {name}": round(cpu(warm, last, name), 2) for name in last.used},
            **{
                f"whole run CPU s/M {name}": round(last.used[name].cpu_seconds / last.rows * 1e6, 2)
                for name in last.used
            },
            **{f"peak MB {name}": round(used.peak / 1e6) for name, used in last.used.items()},
            "MB together": round(max(self._together(look) for look in self.looks) / 1e6),
        }

    def _together(self, look: Look) -> int:
        """The bytes of all measured parts at one time, what they share counted once."""
        return sum(used.together for name, used in look.used.items() if name in self.parts)

    @property
    def steady(self) -> Look:
        """The observations after the warm-up, which alone are counted.

        Where only the last commit comes later, from the commit before it on.

        Raises:
            TooShort: there is only one.
        """
        last = self.looks[-1]
        warm = max(self.before, min(WARM_ROWS, last.rows // WARM_SHARE))
        earlier = [look for look in self.looks if look.rows < last.rows]
        if not earlier:
            raise TooShort(f"all {last.rows} rows came in one commit: nothing can be measured")
        warm = min(warm, earlier[-1].rows)
        return next(look for look in earlier if look.rows >= warm)

    def rates(self) -> list[float]:
        """Rows per second between observations at which the count had changed, in the steady state.

        Counts move at commits, so what lies between two such looks is whole.
        """
        steady = self.steady
        moved = [later for earlier, later in pairwise(self.looks) if later.rows > earlier.rows and later.at > steady.at]
        return [rate(one, other) for one, other in pairwise([steady, *moved])]


def rate(first: Look, last: Look) -> float:
    """Rows per second between two observations."""
    return (last.rows - first.rows) / max(last.at - first.at, 1e-9)


def cpu(first: Look, last: Look, name: str) -> float:
    """CPU seconds of a process per million rows between two observations."""
    return (last.used[name] - first.used[name]).cpu_seconds / max(last.rows - first.rows, 1) * 1e6
