"""Whether processes grow: their memory, files and descriptors over the time that each lives, per ten minutes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from statistics import median
from typing import Final

import psutil

BUCKET: Final = 600.0  # seconds
LEAST: Final = 3  # whole buckets after the first one, in which caches fill, of which a growth is told
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Limit:
    """The growth per ten minutes from which on a measure is flagged: beyond both numbers.

    Args:
        least: in the measure's unit.
        share: of its median.
    """

    least: float
    share: float


LIMITS: Final = {"memory": Limit(4 * MIB, 0.01), "descriptors": Limit(1, 0.01), "threads": Limit(1, 0.01)}
FILES: Final = Limit(2, 0.01)  # of a folder


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading.

    Args:
        at: seconds since the beginning of the run.
        values: measure → value.
    """

    at: float
    values: dict[str, float]


@dataclass(slots=True)
class Life:
    """A process from its start to its end, or a folder.

    Args:
        name: of the process; several lives may have it.
        number: of the life among those of the name, from 1 on.
        samples: in order.
    """

    name: str
    number: int
    samples: list[Sample] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The time over which it was seen."""
        return self.samples[-1].at - self.samples[0].at if self.samples else 0.0

    def buckets(self, measure: str) -> list[float]:
        """The medians of a measure in its whole ten minutes, from its first sample on."""
        found: dict[int, list[float]] = {}
        for sample in self.samples:
            if measure in sample.values:
                found.setdefault(int((sample.at - self.samples[0].at) // BUCKET), []).append(sample.values[measure])
        whole = int(self.seconds // BUCKET)
        return [median(values) for bucket, values in sorted(found.items()) if bucket < whole]

    def growth(self, measure: str) -> float | None:
        """The growth per ten minutes, without the first ones; None: it did not live long enough to tell.

        It is the median of the slopes between any two buckets, or that of neighbours where it is less: a single step,
        as a cache makes it, is no growth.
        """
        later = self.buckets(measure)[1:]
        if len(later) < LEAST:
            return None
        numbered = combinations(enumerate(later), 2)
        slopes = [(value - before) / (at - earlier) for (earlier, before), (at, value) in numbered]
        return min(median(slopes), median(value - before for before, value in pairwise(later)))

    def grows(self, measure: str, limit: Limit) -> bool:
        """True if the growth is beyond the limit."""
        growth = self.growth(measure)
        return growth is not None and growth > max(limit.least, limit.share * median(self.buckets(measure)))


class Lives:
    """The lives of all that is watched."""

    def __init__(self) -> None:
        self._now: dict[str, tuple[object, Life]] = {}
        self.all: list[Life] = []

    def add(self, name: str, identity: object, sample: Sample) -> None:
        """Add a reading.

        Args:
            name: of the process.
            identity: another one than before begins another life.
            sample: the reading.
        """
        known = self._now.get(name)
        if known is None or known[0] != identity:
            number = 1 + sum(life.name == name for life in self.all)
            known = self._now[name] = identity, Life(name, number)
            self.all.append(known[1])
        known[1].samples.append(sample)


def measured(process: psutil.Process) -> dict[str, float]:
    """Read a process's measures.

    Raises:
        psutil.Error: it has ended.
    """
    with process.oneshot():
        return {
            "memory": float(process.memory_info().rss),
            "descriptors": float(process.num_fds()),
            "threads": float(process.num_threads()),
        }


def table(lives: Sequence[Life]) -> Iterator[str]:
    """Return the lines of a table: first and last ten minutes and growth of each measure; flagged ones end in `!`."""
    yield f"{'process':24}{'life':>6}{'minutes':>9}  {'measure':12}{'first':>10}{'last':>10}{'per 10 min':>12}"
    for life in lives:
        limits = {"files": FILES} if "files" in life.samples[0].values else LIMITS
        for measure, limit in limits.items():
            buckets = life.buckets(measure) or [life.samples[-1].values[measure]]
            growth = life.growth(measure)
            unit = MIB if measure == "memory" else 1
            told = "-" if growth is None else f"{growth / unit:+.2f}"
            shown = f"{buckets[0] / unit:10.1f}{buckets[-1] / unit:10.1f}{told:>12}"
            flag = " !" if life.grows(measure, limit) else ""
            yield f"{life.name:24}{life.number:>6}{life.seconds / 60:>9.0f}  {measure:12}{shown}{flag}"


def growing(lives: Sequence[Life]) -> list[str]:
    """Return what grows, as `process life measure`."""
    return [
        f"{life.name} {life.number} {measure}"
        for life in lives
        for measure, limit in ({**LIMITS, "files": FILES}).items()
        if life.grows(measure, limit)
    ]
