"""The cost of each part, from the benchmark's results: CPU of one machine with all parts together.

Two workloads differ in rows per transaction, so each part's cost for a row and for a transaction follow from its CPU
per million rows in both. Not measured but assumed are marked so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.bench.markdown import cases, spread_of
from tests.bench.result import Result, Row

FILE = Path(__file__).with_name("costs.json")
OLTP_ROWS, BULK_ROWS = 5, 1000  # of a transaction of tests.bench.workload
PRODUCE, APPLY = "MySQL to Kafka, ", "Kafka to PostgreSQL, "
TO_KAFKA, TO_TARGET = "commit to Kafka, ", "commit to PostgreSQL, "
COMMIT_MS = 5.0  # COPY, merge and commit of a few rows; measured apart, by a prototype
# Our name of a part, the process, and the half of the way in which it is measured.
PARTS = {
    "mysqld": ("mysqld", PRODUCE),
    "producer": ("producer", PRODUCE),
    "broker, written to": ("broker", PRODUCE),
    "broker, read from": ("broker", APPLY),
    "JVM": ("JVM", APPLY),
    "driver": ("driver", APPLY),
    "postgres": ("postgres", APPLY),
}
# Cores that one service can use of a part at most. One thread: the dump's, the backend that merges; the interpreter's
# lock in producer and driver, beside which libraries do a little. The JVM has a task a partition and the planning.
MOST = {"mysqld": 1.0, "producer": 1.2, "driver": 1.2, "postgres": 1.1}


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU microseconds of one part."""

    row_us: float
    event_us: float


@dataclass(frozen=True, slots=True)
class Costs:
    """The input of the model.

    Args:
        measured: place and date of the measurement.
        parts: name → cost, for rows of `row_bytes`.
        kafka_ms, fetch_ms, commit_ms: the least time of a Kafka transaction, of one of Spark's fetches in the latency
            profile, of the target's commit.
        row_bytes: a row of the workload in the binary log.
        event_bytes: bytes that a transaction adds to the binary log (GTID, table maps, headers of events).
        compressed: bytes in Kafka for a byte of the binary log; assumed: rows compress as differently as they are.
        fetched: number of times that the log is read, including copies to other brokers; assumed.
        batch_ms: the least time of a micro-batch, which is how Spark reads where more comes.
        rates, latencies: end-to-end measurements to compare with: case → rows/s, or p50, p95, p99 ms.
    """

    measured: str
    parts: Mapping[str, Cost]
    kafka_ms: float
    fetch_ms: float
    commit_ms: float
    row_bytes: float = 200.0
    event_bytes: float = 800.0
    compressed: float = 0.4
    fetched: float = 1.0
    batch_ms: float = 50.0
    rates: Mapping[str, float] = field(default_factory=dict)
    latencies: Mapping[str, Sequence[float]] = field(default_factory=dict)


def fitted(results: Sequence[Result]) -> Costs:
    """Costs from results of the parts `throughput` and `latency`.

    Raises:
        LookupError: one of them is missing.
    """
    rows = cases(results)
    parts = {name: _cost(rows, process, half) for name, (process, half) in PARTS.items()}
    # The cost of a row that reaches the target; with hot keys only some rows do, so the higher cost counts.
    dearest = max(
        _figure(rows, APPLY + kind, "CPU s/M postgres") for kind in ("bulk", "oltp", "cold") if APPLY + kind in rows
    )
    parts["postgres"] = Cost(dearest, 0.0)
    quickest = min((case for case in rows if case.startswith(TO_TARGET)), key=transactions)
    seen = _figure(rows, quickest.replace(TO_TARGET, TO_KAFKA), "p50 ms")
    newest = results[-1]
    return Costs(
        measured=f"{newest.at} UTC, {newest.machine.get('processor', '')}, commit {newest.machine.get('commit', '')}",
        parts=parts,
        kafka_ms=round(seen, 1),
        # what is seen in Kafka waits half a fetch for the next one, comes with it, and is committed
        fetch_ms=round((_figure(rows, quickest, "p50 ms") - seen - COMMIT_MS) / 1.5, 1),
        commit_ms=COMMIT_MS,
        rates={
            c: _figure(rows, c, "rows/s") for h in (PRODUCE, APPLY) for k in ("bulk", "oltp") if (c := h + k) in rows
        },
        latencies={
            case: [round(_figure(rows, case, f"{cut} ms"), 1) for cut in ("p50", "p95", "p99")]
            for case in rows
            if case.startswith(TO_TARGET)
        },
    )


def transactions(case: str) -> float:
    """Transactions per second, from the end of a case's name: `…, 200/s`."""
    return float(case.rpartition(" ")[2].removesuffix("/s"))


def _cost(rows: Mapping[str, Sequence[Row]], part: str, half: str) -> Cost:
    bulk, oltp = (_figure(rows, half + kind, f"CPU s/M {part}") for kind in ("bulk", "oltp"))
    event = max(0.0, (oltp - bulk) / (1 / OLTP_ROWS - 1 / BULK_ROWS))
    return Cost(round(max(0.0, bulk - event / BULK_ROWS), 3), round(event, 3))


def _figure(rows: Mapping[str, Sequence[Row]], case: str, figure: str) -> float:
    found = spread_of(rows.get(case, ()), figure)
    if found is None:
        raise LookupError(f"no result has {figure} of {case}")
    return found.median


def read(file: Path = FILE) -> Costs:
    """Read stored costs."""
    found = json.loads(file.read_text())
    return Costs(**found | {"parts": {name: Cost(**cost) for name, cost in found["parts"].items()}})


def write(costs: Costs, file: Path = FILE) -> None:
    """Store the costs."""
    file.write_text(json.dumps(asdict(costs), indent=1) + "\n")
