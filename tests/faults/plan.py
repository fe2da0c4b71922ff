"""The order in which a soak kills processes and servers, derived from a seed alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.faults import killing

PRODUCER_AT_RANDOM: Final = ("producer", "broker", "MySQL")
APPLIER_AT_RANDOM: Final = ("driver", "JVM")
TARGET_AT_RANDOM: Final = {
    "sqlite": (),
    "postgres": ("PostgreSQL", "PostgreSQL's backend"),
    "mysql": ("target's MySQL", "session with the target"),
}
CLUSTER_AT_RANDOM: Final = ("executor", "worker", "master")


@dataclass(frozen=True, slots=True)
class Step:
    """Kills that happen at the same time.

    Args:
        applier: kill of the applying side: a failpoint, or a kind of random kill; empty: none.
        passage: passage of the failpoint at which it is killed.
        other: kill of the producing side meanwhile.
        other_passage: passage of the other side's failpoint.
        moment: seconds to wait before a random kill.
    """

    applier: str
    passage: int
    other: str
    other_passage: int
    moment: float


@dataclass(frozen=True, slots=True)
class Round:
    """One service from its initial load to the final comparison.

    Args:
        snapshot: points at which the producer dies within the initial load, in order.
        steps: under the load.
        executors: number of executors killed at the end, on a Spark of several processes.
    """

    snapshot: Sequence[str]
    steps: Sequence[Step]
    executors: int

    @property
    def kills(self) -> int:
        """The number of kills."""
        each = sum(bool(step.applier) + bool(step.other) for step in self.steps)
        return len(self.snapshot) + each + self.executors


def rounds(target: str, seed: int, number: int, *, producer_rounds: int, cluster: bool = False) -> Iterator[Round]:
    """A number of rounds, in each of which every process and server is killed once.

    Args:
        target: one of `rig.TARGETS`.
        seed: equal seeds give equal rounds.
        number: number of rounds.
        producer_rounds: in so many of them, the producer's named points are among it.
        cluster: the applier runs on a Spark cluster, whose processes are killed among the others.
    """
    random = Random(f"{seed} {target}")
    named = killing.points(target)
    for at in range(number):
        produce = [point for point in named if killing.command(point) == "produce" and point not in killing.SNAPSHOT]
        first = [*(produce if at < producer_rounds else ()), *PRODUCER_AT_RANDOM]
        second = [point for point in named if killing.command(point) == "apply"]
        second += APPLIER_AT_RANDOM + TARGET_AT_RANDOM[target]
        second += CLUSTER_AT_RANDOM if cluster else ()
        random.shuffle(first)
        random.shuffle(second)
        length = max(len(first), len(second))
        first += [""] * (length - len(first))
        second += [""] * (length - len(second))
        steps = [
            Step(applier, _passage(random, applier), other, _passage(random, other), random.uniform(0, 1.5))
            for applier, other in zip(second, first, strict=True)
        ]
        yield Round(killing.SNAPSHOT if at < producer_rounds else (), steps, 0 if cluster else 1)


def _passage(random: Random, point: str) -> int:
    number = random.randrange(1, 5)
    # The flood, and the XA transactions, that lead there are run once, and may be one commit.
    return 1 if point in killing.ONCE or "mid_event" in point or "prepared" in point else number
