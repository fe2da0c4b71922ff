"""Cores, rates and bytes, computed from costs. Pure.

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
    """The load of the source.

    Args:
        rows: a second.
        rows_per_event: rows of a transaction.
        row_bytes: bytes of a row in the binary log.
    """

    rows: float
    rows_per_event: float
    row_bytes: float = 200.0

    @property
    def events(self) -> float:
        """Transactions per second."""
        return self.rows / self.rows_per_event


def per_row(costs: Costs, part: str, workload: Workload) -> float:
    """CPU microseconds of a part per row; cost grows at most with a row's length."""
    cost = costs.parts[part]
    return cost.row_us * workload.row_bytes / costs.row_bytes + cost.event_us / workload.rows_per_event


def cores(costs: Costs, workload: Workload) -> dict[str, float]:
    """Cores that each part of one service keeps busy."""
    return {part: workload.rows * per_row(costs, part, workload) / 1e6 for part in PARTS}


def most(part: str, partitions: int) -> float:
    """Cores that a part can use: the JVM one per partition's task, and one for planning and handover."""
    return partitions + 1.0 if part == "JVM" else MOST.get(part, math.inf)


@dataclass(frozen=True, slots=True)
class Limit:
    """The highest rate, and its bottleneck."""

    rows: float
    by: str


def highest(
    costs: Costs,
    workload: Workload,
    hosts: Sequence[Collection[str]],
    host_cores: float,
    partitions: int = 1,
) -> Limit:
    """Highest rows per second of one service, for events and rows like the workload's.

    Args:
        costs, workload: input; the workload's rate does not matter.
        hosts: which parts are on which.
        host_cores: cores of each host.
        partitions: partitions of the event topic.
    """
    limits = []
    for parts in hosts:
        shared = sum(per_row(costs, part, workload) for part in parts)
        busy = "all its cores" if len(parts) > 2 else f"the cores of {' + '.join(parts)}"
        limits.append(Limit(host_cores / shared * 1e6, busy))
        limits += [Limit(alone(costs, part, workload, partitions), f"what {part} has in parallel") for part in parts]
    return min(limits, key=lambda limit: limit.rows)


def alone(costs: Costs, part: str, workload: Workload, partitions: int = 1) -> float:
    """Highest rows per second of one part of a service, with any number of cores."""
    return most(part, partitions) / per_row(costs, part, workload) * 1e6


def partitions(costs: Costs, workload: Workload) -> int:
    """The number of partitions with which the JVM's tasks are loaded up to `FULL`."""
    return max(1, math.ceil(cores(costs, workload)["JVM"] / FULL - 1))


def services(costs: Costs, workload: Workload) -> int | None:
    """The number of services, each with its own schemas, with which no part is loaded above `FULL` of its threads.

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
    """Megabytes per second between the hosts."""
    binlog = (workload.rows * workload.row_bytes + workload.events * costs.event_bytes) / 1e6
    log = binlog * costs.compressed
    return {
        "binary log": binlog,
        "into Kafka": log,
        "out of Kafka": log * costs.fetched,
        "COPY": workload.rows * workload.row_bytes / 1e6,
    }


def rows_of(costs: Costs, megabytes: float, rows_per_event: float, row_bytes: float) -> float:
    """Rows per second of a binary log that grows by a number of megabytes per second."""
    return megabytes * 1e6 / (row_bytes + costs.event_bytes / rows_per_event)
