"""Simulates latency under load: events arrive in bursts, and every part processes all waiting ones at once. Pure.

The publisher, Spark and the target are each such a part: a turn costs a fixed time and a time for each event. So a
busy part is late by a longer turn and not by an ever longer queue, until its load nears one.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from random import Random

from connector.spark.stream.load_monitor import IDLE_MESSAGES
from tests.bench.scale.capacity import Workload, per_row
from tests.bench.scale.costs import DRIVERS_JVM, EXECUTORS, Costs

Times = list[float]
KIND = "oltp"


def arrivals(rate: float, seconds: float, burst: int, seed: int = 1) -> Times:
    """Arrival times: bursts of `burst` events at random times, at a given rate."""
    chance = Random(seed)
    found, now = [], 0.0
    while (now := now + chance.expovariate(rate / burst)) < seconds:
        found += [now] * burst
    return found


def gated(come: Sequence[float], turn: float, each: float) -> Times:
    """Departure times of events from a part that processes all waiting ones in turns.

    Args:
        come: when they come, ascending.
        turn: seconds that a turn takes at least.
        each: seconds that each event adds.
    """
    leave: Times = []
    free, first = 0.0, 0
    while first < len(come):
        begin = max(free, come[first])
        last = first
        while last < len(come) and come[last] <= begin:
            last += 1
        free = begin + turn + each * (last - first)
        leave += [free] * (last - first)
        first = last
    return leave


def seconds_per_event(costs: Costs, part: str, rows_per_event: float) -> float:
    """Service time of a part that processes events one by one, each with so many rows as those of `KIND`."""
    return per_row(costs, part, Workload(0, KIND, costs.row_bytes)) * rows_per_event / 1e6


def saturation(costs: Costs, rows_per_event: float) -> float:
    """Events per second at which the slowest part is always busy."""
    return 1 / max(_stages(costs, rows_per_event).values())


def latencies(costs: Costs, rate: float, rows_per_event: float, burst: int = 1, seconds: float = 60.0) -> Times:
    """Seconds from commit to visible in the target, for every event after the first second."""
    each = _stages(costs, rows_per_event)
    come = arrivals(rate, seconds, burst)
    in_kafka = gated(come, costs.kafka_ms / 1e3, each["publish"])
    turn = costs.fetch_ms if rate <= IDLE_MESSAGES else costs.batch_ms
    in_driver = gated(in_kafka, turn / 1e3, each["spark"])
    visible = gated(in_driver, costs.commit_ms / 1e3, each["target"])
    return [seen - at for at, seen in zip(come, visible, strict=True) if at >= 1.0]


def percentiles(found: Sequence[float]) -> tuple[float, float, float]:
    """p50, p95 and p99 in milliseconds."""
    cuts = statistics.quantiles(found, n=100)
    return cuts[49] * 1e3, cuts[94] * 1e3, cuts[98] * 1e3


def _stages(costs: Costs, rows_per_event: float) -> dict[str, float]:
    """Seconds per event of the concurrent stages: driver and target work in turn."""
    each = {part: seconds_per_event(costs, part, rows_per_event) for part in costs.parts}
    return {
        "publish": each["producer"],
        "spark": each[EXECUTORS] + each[DRIVERS_JVM],
        "target": each["driver"] + each["postgres"],
    }
