"""Cores, rates and bytes, computed from costs. Pure.

A part's load is rows per second times its cost for one. A host's cores are shared by the parts on it; a part that is
one thread at heart cannot use more than that thread, however many cores there are; executors have a core each. What is
planned with is filled to `FULL`, because of what queues do above it (`queueing`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tests.bench.scale.costs import DRIVERS_JVM, EXECUTORS, KINDS, MOST, PARTS, Costs

FULL = 0.7
SKIPPED = 0.2  # of the producer's cost of a transaction, for one that is another service's: frames and checksums
TO_KAFKA = ("mysqld", "producer", "broker, written to")
SPARK = (EXECUTORS, DRIVERS_JVM, "driver")
TO_TARGET = ("broker, read from", *SPARK, "postgres")
APART = (("mysqld",), ("producer",), ("broker, written to", "broker, read from"), SPARK, ("postgres",))
"""Each on a host of its own; with `local[N]` the executor is in the driver's JVM."""
DRIVER = (DRIVERS_JVM, "driver")
"""The applier's own process, which more executors do not help."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The load of the source.

    Args:
        rows: a second.
        kind: one of `KINDS`.
        row_bytes: bytes of a row in the binary log.
    """

    rows: float
    kind: str
    row_bytes: float = 200.0

    @property
    def events(self) -> float:
        """Transactions per second."""
        return self.rows / KINDS[self.kind]


def per_row(costs: Costs, part: str, workload: Workload) -> float:
    """CPU microseconds of a part per row; cost grows at most with a row's length."""
    return costs.parts[part][workload.kind] * workload.row_bytes / costs.row_bytes


def cores(costs: Costs, workload: Workload) -> dict[str, float]:
    """Cores that each part of one service keeps busy."""
    return {part: workload.rows * per_row(costs, part, workload) / 1e6 for part in PARTS}


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
) -> Limit:
    """Highest rows per second of one service, for events and rows like the workload's.

    Args:
        costs, workload: input; the workload's rate does not matter.
        hosts: which parts are on which.
        host_cores: cores of each host; executors use what is left.
    """
    limits = []
    for parts in hosts:
        shared = sum(per_row(costs, part, workload) for part in parts)
        busy = "all its cores" if len(parts) > 2 else f"the cores of {' + '.join(parts)}"
        limits.append(Limit(host_cores / shared * 1e6, busy))
        limits += [Limit(alone(costs, part, workload), f"what {part} has in parallel") for part in parts]
    return min(limits, key=lambda limit: limit.rows)


def alone(costs: Costs, part: str, workload: Workload) -> float:
    """Highest rows per second of one part of a service, with any number of cores."""
    return MOST.get(part, math.inf) / per_row(costs, part, workload) * 1e6


def read_by(costs: Costs, workload: Workload, number: int) -> float:
    """Rows per second that executors with a core each read, check and compact."""
    return number / per_row(costs, EXECUTORS, workload) * 1e6


def applied_by(costs: Costs, workload: Workload, number: int) -> Limit:
    """Highest rows per second of an applier on a cluster of so many executors."""
    others = [Limit(alone(costs, part, workload), part) for part in (*DRIVER, "postgres")]
    return min(Limit(read_by(costs, workload, number), EXECUTORS), *others, key=lambda limit: limit.rows)


def executors(costs: Costs, workload: Workload) -> int:
    """The number of executors that are loaded up to `FULL` by a rate."""
    return max(1, math.ceil(cores(costs, workload)[EXECUTORS] / FULL))


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


def rows_of(costs: Costs, megabytes: float, kind: str, row_bytes: float) -> float:
    """Rows per second of a binary log that grows by a number of megabytes per second."""
    return megabytes * 1e6 / (row_bytes + costs.event_bytes / KINDS[kind])
