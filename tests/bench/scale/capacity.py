"""Cores, rates and bytes from costs: arithmetic, no more. Pure.

A part's load is rows per second times its cost for one. A host's cores are shared by the parts on it; a part that is
one thread at heart cannot use more than that thread, however many cores there are. What is planned with is filled
to `FULL`, because of what queues do above it (`queueing`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tests.bench.scale.costs import MOST, PARTS, Costs

FULL = 0.7
SKIPPED = 0.2  # of the producer's cost of a transaction, for one that is another service's: frames and checksums
TO_KAFKA = ("mysqld", "producer", "broker, written to")
TO_TARGET = ("broker, read from", "JVM", "driver", "postgres")
APART = (("mysqld",), ("producer",), ("broker, written to", "broker, read from"), ("JVM", "driver"), ("postgres",))
"""Each on a host of its own; the driver lives beside its JVM."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What the source does.

    Args:
        rows: a second.
        rows_per_event: of a transaction.
        row_bytes: of a row in the binary log.
    """

    rows: float
    rows_per_event: float
    row_bytes: float = 200.0

    @property
    def events(self) -> float:
        """Transactions a second."""
        return self.rows / self.rows_per_event


def per_row(costs: Costs, part: str, workload: Workload) -> float:
    """CPU microseconds of a part for each row. A row that is twice as long costs twice as much: at most that."""
    cost = costs.parts[part]
    return cost.row_us * workload.row_bytes / costs.row_bytes + cost.event_us / workload.rows_per_event


def cores(costs: Costs, workload: Workload) -> dict[str, float]:
    """Cores that each part of one service is busy with."""
    return {part: workload.rows * per_row(costs, part, workload) / 1e6 for part in PARTS}


def most(part: str, partitions: int) -> float:
    """Cores that a part can use: the JVM a task a partition, and one for planning and handing over."""
    return partitions + 1.0 if part == "JVM" else MOST.get(part, math.inf)


@dataclass(frozen=True, slots=True)
class Limit:
    """The highest rate, and what ends there."""

    rows: float
    by: str


def highest(
    costs: Costs,
    workload: Workload,
    hosts: Sequence[Collection[str]],
    host_cores: float,
    partitions: int = 1,
) -> Limit:
    """Rows a second that one service can take, of events and rows like the workload's.

    Args:
        costs, workload: its rate does not matter.
        hosts: which parts are on which.
        host_cores: of each.
        partitions: of the event topic.
    """
    limits = []
    for parts in hosts:
        shared = sum(per_row(costs, part, workload) for part in parts)
        busy = "all its cores" if len(parts) > 2 else f"the cores of {' + '.join(parts)}"
        limits.append(Limit(host_cores / shared * 1e6, busy))
        limits += [Limit(alone(costs, part, workload, partitions), f"what {part} has in parallel") for part in parts]
    return min(limits, key=lambda limit: limit.rows)


def alone(costs: Costs, part: str, workload: Workload, partitions: int = 1) -> float:
    """Rows a second that a part of one service can take, however many cores there are."""
    return most(part, partitions) / per_row(costs, part, workload) * 1e6


def partitions(costs: Costs, workload: Workload) -> int:
    """How many partitions, so that the JVM's tasks are filled to `FULL` at most."""
    return max(1, math.ceil(cores(costs, workload)["JVM"] / FULL - 1))


def services(costs: Costs, workload: Workload) -> int | None:
    """How many services, each with schemas of its own, so that no part of any is filled above `FULL` of its threads.

    Returns:
        The least number; None when more of them do not help, because each reads the whole binary log.
    """
    used = cores(costs, workload)
    for number in range(1, 65):
        share = {part: used[part] / number for part in MOST}
        share["mysqld"] = used["mysqld"]
        share["producer"] += used["producer"] * SKIPPED * (1 - 1 / number)
        if all(share[part] <= MOST[part] * FULL for part in MOST):
            return number
    return None


def traffic(costs: Costs, workload: Workload) -> Mapping[str, float]:
    """Megabytes a second, between the hosts."""
    binlog = (workload.rows * workload.row_bytes + workload.events * costs.event_bytes) / 1e6
    log = binlog * costs.compressed
    return {
        "binary log": binlog,
        "into Kafka": log,
        "out of Kafka": log * costs.fetched,
        "COPY": workload.rows * workload.row_bytes / 1e6,
    }


def rows_of(costs: Costs, megabytes: float, rows_per_event: float, row_bytes: float) -> float:
    """Rows a second of a binary log that grows by so many megabytes a second."""
    return megabytes * 1e6 / (row_bytes + costs.event_bytes / rows_per_event)
