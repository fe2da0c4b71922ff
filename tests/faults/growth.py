"""Whether processes grow: their memory, files and descriptors over the time that each lives, per ten minutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from statistics import median
from typing import Final

import psutil

BUCKET: Final = 300.0  # seconds
SPAN: Final = 600.0  # seconds of which a growth is told
LEAST: Final = 4  # whole buckets after the first one, in which caches fill, of which a growth is told
SHOWN: Final = 6  # at most, of the spans of a life
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
FOLDER_LIMITS: Final = {"files": Limit(2, 0.01), "bytes": Limit(4 * MIB, 0.01)}


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

    @property
    def limits(self) -> Mapping[str, Limit]:
        """The limits of its measures."""
        return FOLDER_LIMITS if "files" in self.samples[0].values else LIMITS

    def buckets(self, measure: str, seconds: float = BUCKET) -> list[float]:
        """The medians of a measure in its whole buckets of so many seconds, from its first sample on."""
        found: dict[int, list[float]] = {}
        for sample in self.samples:
            found.setdefault(int((sample.at - self.samples[0].at) // seconds), []).append(sample.values[measure])
        whole = int(self.seconds // seconds)
        return [median(values) for bucket, values in sorted(found.items()) if bucket < whole]

    def growth(self, measure: str) -> float | None:
        """The growth per ten minutes, without the first bucket; None: it did not live long enough to tell.

        It is the median of the slopes between any two buckets, or that of neighbours where it is less: a single step,
        as a cache makes it, is no growth.
        """
        later = self.buckets(measure)[1:]
        if len(later) < LEAST:
            return None
        numbered = combinations(enumerate(later), 2)
        slopes = [(value - before) / (at - earlier) for (earlier, before), (at, value) in numbered]
        return min(median(slopes), median(value - before for before, value in pairwise(later))) * SPAN / BUCKET

    def grows(self, measure: str) -> bool:
        """True if the growth is beyond the limit."""
        growth, limit = self.growth(measure), self.limits[measure]
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


def measured(processes: Iterable[psutil.Process]) -> dict[str, float]:
    """Read the measures of processes, and return the sums.

    Raises:
        psutil.Error: one has ended.
    """
    sums = dict.fromkeys(LIMITS, 0.0)
    for process in processes:
        with process.oneshot():
            sums["memory"] += process.memory_info().rss
            sums["descriptors"] += process.num_fds()
            sums["threads"] += process.num_threads()
    return sums


def table(lives: Sequence[Life]) -> Iterator[str]:
    """Return the lines of a table: each measure by the ten minutes, and its growth; flagged ones end in `!`.

    A longer life than an hour has some of its ten minutes, a shorter one than ten minutes its last sample.
    """
    yield f"{'process':18}{'life':>5}{'minutes':>8}  {'measure':12}{'per 10 min':>11}  medians of each ten minutes"
    for life in lives:
        for measure in life.limits:
            spans = life.buckets(measure, SPAN) or [life.samples[-1].values[measure]]
            step = max((len(spans) - 1) / (SHOWN - 1), 1)
            shown = [spans[round(at * step)] for at in range(min(SHOWN, len(spans)))]
            unit = MIB if measure in ("memory", "bytes") else 1
            growth = life.growth(measure)
            told = "-" if growth is None else f"{growth / unit:+.2f}"
            values = "".join(f"{value / unit:9.1f}" for value in shown)
            flag = " !" if life.grows(measure) else ""
            yield f"{life.name:18}{life.number:>5}{life.seconds / 60:>8.0f}  {measure:12}{told:>11}  {values}{flag}"


def growing(lives: Sequence[Life]) -> list[str]:
    """Return what grows, as `process life measure`."""
    return [f"{life.name} {life.number} {measure}" for life in lives for measure in life.limits if life.grows(measure)]
