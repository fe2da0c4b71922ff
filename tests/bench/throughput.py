"""Rows a second from a filled binary log to Kafka acked, and from Kafka to PostgreSQL."""

from __future__ import annotations

from tests.bench import workload
from tests.bench.site import drain, site


def run(rows: int) -> dict[str, dict[str, float]]:
    """One backlog of each workload through both halves; figures by name."""
    figures = {}
    for kind in ("bulk", "oltp"):
        with site() as place:
            if kind == "bulk":
                workload.bulk(place.connect, first=0, rows=rows)
            else:
                workload.oltp(place.connect, first=0, transactions=rows // 5)
            producer, gauges = place.worker("produce")
            # The oldest deletes of `oltp` meet no row: the goal is a little under the number of changes.
            goal = int(rows * 0.97)
            made = drain(producer, gauges, "thl_published_rows_total", goal, {})
            figures[f"MySQL to Kafka, {kind}"] = made.figures()
            applier, gauges = place.worker("apply", apply={"profile": "catch-up"})
            taken = drain(applier, gauges, "thl_applied_rows_total", goal, {"JVM": "java", "driver": "python"})
            figures[f"Kafka to PostgreSQL, {kind}"] = taken.figures()
    return figures
