"""The cost of each part, from the benchmark's results: CPU of one machine with all parts together.

Each workload has its own cost of a row, as measured: what a transaction adds is in it. Spark's JVM is two parts, since
on a cluster most of it runs in executors; how much stays in the driver's process is measured there.
Not measured but assumed are marked so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.bench.markdown import cases, spread_of
from tests.bench.result import Result, Row

FILE = Path(__file__).with_name("costs.json")
KINDS = {"oltp": 5, "bulk": 1000, "cold": 5, "one row": 1}
"""The workloads of tests.bench.workload → rows of a transaction; `one row` is of the kind that `growth` measures."""
PRODUCE, APPLY = "MySQL to Kafka, ", "Kafka to PostgreSQL, "
TO_KAFKA, TO_TARGET = "commit to Kafka, ", "commit to PostgreSQL, "
COMMIT_MS = 5.0  # COPY, merge and commit of a few rows; measured apart, by a prototype
EXECUTORS, DRIVERS_JVM = "executors", "driver's JVM"
# Our name of a part, the process, and the half of the way in which it is measured.
MEASURED = {
    "mysqld": ("mysqld", PRODUCE),
    "producer": ("producer", PRODUCE),
    "broker, written to": ("broker", PRODUCE),
    "broker, read from": ("broker", APPLY),
    "driver": ("driver", APPLY),
    "postgres": ("postgres", APPLY),
}
PARTS = (*list(MEASURED)[:4], EXECUTORS, DRIVERS_JVM, *list(MEASURED)[4:])
# Cores that one service can use of a part at most. One thread: the dump's, the backend that merges; the interpreter's
# lock in producer and driver, beside which libraries do a little. Executors have one each. Assumed: the thread that
# runs Spark's jobs one after the other is all that the driver's JVM has.
MOST = {"mysqld": 1.0, "producer": 1.2, DRIVERS_JVM: 1.0, "driver": 1.2, "postgres": 1.1}

RowCosts = Mapping[str, float]
"""CPU microseconds of a row, by workload."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The input of the model.

    Args:
        measured: place and date of the measurement.
        parts: name → costs, for rows of `row_bytes`.
        driver_share: the share of the CPU of all of Spark's JVMs that stays in the driver's.
        kafka_ms, fetch_ms, commit_ms: the least time of a Kafka transaction, of one of Spark's fetches in continuous
            mode, of the target's commit.
        row_bytes: a row of the workload in the binary log.
        event_bytes: bytes that a transaction adds to the binary log (GTID, table maps, headers of events).
        compressed: bytes in Kafka for a byte of the binary log; assumed: rows compress as differently as they are.
        fetched: number of times that the log is read, including copies to other brokers; assumed.
        batch_ms: the least time of a micro-batch, which is how Spark reads where more comes.
        rates, latencies: end-to-end measurements to compare with: case → rows/s, or p50, p95, p99 ms.
    """

    measured: str
    parts: Mapping[str, RowCosts]
    driver_share: float
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


def fitted(results: Sequence[Result], before: Costs) -> Costs:
    """Costs from results of the parts `throughput`, `latency` and `executors`.

    Args:
        results: the results.
        before: what a workload keeps that was not measured.

    Raises:
        LookupError: a workload was measured in part only; or no latency was.
    """
    rows = cases(results)
    on_cluster = {case: found for case, found in rows.items() if case.endswith(EXECUTORS)}
    share = _driver_share(on_cluster) if on_cluster else before.driver_share
    parts = {name: dict(before.parts[name]) for name in PARTS}
    for kind in KINDS:
        if APPLY + kind in rows:
            for name, cost in _row_costs(rows, kind, share).items():
                parts[name][kind] = round(cost, 3)
    quickest = min((case for case in rows if case.startswith(TO_TARGET)), key=transactions)
    seen = _figure(rows, quickest.replace(TO_TARGET, TO_KAFKA), "p50 ms")
    newest = results[-1]
    ends = [half + kind for half in (PRODUCE, APPLY) for kind in KINDS if half + kind in rows]
    return Costs(
        measured=f"{newest.at} UTC, {newest.machine.get('processor', '')}, commit {newest.machine.get('commit', '')}",
        parts=parts,
        driver_share=round(share, 2),
        kafka_ms=round(seen, 1),
        # what is seen in Kafka waits half a fetch for the next one, comes with it, and is committed
        fetch_ms=round((_figure(rows, quickest, "p50 ms") - seen - COMMIT_MS) / 1.5, 1),
        commit_ms=COMMIT_MS,
        rates={case: _figure(rows, case, "rows/s") for case in (*ends, *on_cluster)},
        latencies={
            case: [round(_figure(rows, case, f"{cut} ms"), 1) for cut in ("p50", "p95", "p99")]
            for case in rows
            if case.startswith(TO_TARGET)
        },
    )


def transactions(case: str) -> float:
    """Transactions per second, from the end of a case's name: `…, 200/s`."""
    return float(case.rpartition(" ")[2].removesuffix("/s"))


def _row_costs(rows: Mapping[str, Sequence[Row]], kind: str, share: float) -> dict[str, float]:
    found = {name: _figure(rows, half + kind, f"CPU s/M {process}") for name, (process, half) in MEASURED.items()}
    jvm, workers = (_figure(rows, APPLY + kind, f"CPU s/M {process}") for process in ("JVM", "workers"))
    return found | {EXECUTORS: jvm * (1 - share) + workers, DRIVERS_JVM: jvm * share}


def _driver_share(rows: Mapping[str, Sequence[Row]]) -> float:
    """The share with the fewest executors: the more tasks there are, the more rows the driver's JVM waits for."""
    least = min(rows, key=lambda case: int(case.split()[-2]))
    driver, executors = (_figure(rows, least, f"CPU s/M {process}") for process in ("JVM", EXECUTORS))
    return driver / (driver + executors)


def _figure(rows: Mapping[str, Sequence[Row]], case: str, figure: str) -> float:
    found = spread_of(rows.get(case, ()), figure)
    if found is None:
        raise LookupError(f"no result has {figure} of {case}")
    return found.median


def read(file: Path = FILE) -> Costs:
    """Read stored costs."""
    return Costs(**json.loads(file.read_text()))


def write(costs: Costs, file: Path = FILE) -> None:
    """Store the costs."""
    file.write_text(json.dumps(asdict(costs), indent=1) + "\n")
