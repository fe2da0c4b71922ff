"""The model's results as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.bench.scale import capacity, queueing
from tests.bench.scale.capacity import APART, DRIVER, FULL, Workload
from tests.bench.scale.costs import DRIVERS_JVM, KINDS, PARTS, PRODUCE, Costs, transactions

SHOWN = ("oltp", "bulk")  # where each workload has many lines
RATES = (10_000, 50_000, 200_000, 1_000_000)
HOST_CORES = (1, 2, 4, 8, 16)
NUMBERS = (1, 2, 4)
LOADS = (0.1, 0.3, 0.5, 0.7, 0.9)
BURST = 200
LIVE_ROWS = 3  # of a transaction of the latency benchmark: one or five
REMEDIES = {
    "mysqld": "a replica of the source to read from; more services do not help, for each reads all of the log",
    "producer": "more services, each with schemas of its own",
    DRIVERS_JVM: "more services: there is one driver a service",
    "driver": "more services: there is one driver a service",
    "postgres": "`target.writers`, or more services, into other databases: one connection merges",
}


def page(costs: Costs, *, row_bytes: float, terabytes: float) -> str:
    """The whole page."""
    return "\n\n".join(
        (
            f"**Measured**: this table, the CPU of each process on one machine; that {costs.driver_share:.0%} of the "
            "JVMs' CPU stays in the driver's, with one executor and `oltp`, taken for all workloads; and "
            "the column `measured` of the last table "
            f"({costs.measured}). **Modelled**: all else. No part ran on a host of its own. "
            f"Rows have {row_bytes:.0f} bytes in the binary log; rows of a transaction: "
            f"{', '.join(f'{kind} {rows:,}' for kind, rows in KINDS.items())}.",
            priced(costs),
            spread(costs, row_bytes),
            needs(costs, row_bytes, terabytes),
            first(costs, row_bytes),
            takes(costs, row_bytes),
            waits(costs),
            held(costs),
        )
    )


def priced(costs: Costs) -> str:
    """The table of costs."""
    lines = [[part, *(f"{costs.parts[part][kind]:.2f}" for kind in KINDS)] for part in PARTS]
    return _table(["CPU µs of a row", *KINDS], lines)


def spread(costs: Costs, row_bytes: float) -> str:
    """The rates by number of executors, beside those of target and producer."""
    lines = []
    for kind in KINDS:
        workload = Workload(0, kind, row_bytes)
        limits = [capacity.applied_by(costs, workload, number) for number in NUMBERS]
        rates = [
            *(capacity.read_by(costs, workload, number) for number in NUMBERS),
            min(capacity.alone(costs, part, workload) for part in DRIVER),
            capacity.alone(costs, "postgres", workload),
            capacity.alone(costs, "producer", workload),
        ]
        applied = [f"{limit.rows:,.0f}: {limit.by}" for limit in limits]
        lines.append([kind, *(f"{rate:,.0f}" for rate in rates), " / ".join(dict.fromkeys(applied))])
    title = (
        "By number of executors, each with a core of its own: rows/s that they read, check and compact (their JVMs and "
        "Python workers; this grows with them); that the driver's process plans, decides and stages (Python and its "
        "JVM; there is one); that one session of PostgreSQL takes; that one producer writes; and what of it is "
        "applied, with the limit, for each number of executors at which it changes. For a log of one partition and "
        "`target.writers: 1`:"
    )
    read = [f"{number} executor{'s' if number > 1 else ''}" for number in NUMBERS]
    return title + "\n\n" + _table(["", *read, "driver", "PostgreSQL", "producer", "applied"], lines)


def needs(costs: Costs, row_bytes: float, terabytes: float) -> str:
    """The cores that rates need."""
    megabytes = terabytes * 1e6 / 86_400
    lines = []
    for kind in SHOWN:
        daily = capacity.rows_of(costs, megabytes, kind, row_bytes)
        named = [(f"{rate:,} rows/s", float(rate)) for rate in RATES]
        named.append((f"{terabytes:g} TB of binary log a day = {megabytes:.0f} MB/s = {daily:,.0f} rows/s", daily))
        for name, rate in sorted(named, key=lambda pair: pair[1]):
            workload = Workload(rate, kind, row_bytes)
            used, bytes_ = capacity.cores(costs, workload), capacity.traffic(costs, workload)
            split = capacity.services(costs, workload)
            each = split and capacity.executors(costs, Workload(rate / split, kind, row_bytes))
            lines.append(
                [
                    f"{kind}, {name}",
                    *(f"{used[part]:.2f}" for part in PARTS),
                    str(split or "–"),
                    str(each or "–"),
                    f"{bytes_['binary log']:.0f} / {bytes_['into Kafka']:.0f} / {bytes_['COPY']:.0f}",
                ]
            )
    title = (
        f"Busy cores of each part of one service; how many services (each with schemas of its own, each reading the "
        f"whole binary log) and how many executors of each it takes that nothing is above {FULL:.0%} of its threads; "
        f"MB/s from the source, into Kafka (assumed: {costs.compressed:.0%} of the binary log; times 86.4 are GB a "
        "day of retention, for each copy) and into the target. Where no number of services helps, there is none:"
    )
    return title + "\n\n" + _table(["", *PARTS, "services", "executors", "MB/s"], lines)


def first(costs: Costs, row_bytes: float) -> str:
    """The first bottleneck, and the remedy."""
    workloads = [Workload(0, kind, row_bytes) for kind in KINDS]
    lines = [
        [part, *(f"{FULL * capacity.alone(costs, part, workload):,.0f}" for workload in workloads), remedy]
        for part, remedy in REMEDIES.items()
    ]
    title = f"Rows/s at which a part of one service is {FULL:.0%} full, and what to do then:"
    return title + "\n\n" + _table(["", *KINDS, ""], lines)


def takes(costs: Costs, row_bytes: float) -> str:
    """The rates of given hosts."""
    lines = []
    for kind in SHOWN:
        for number in HOST_CORES:
            workload = Workload(0, kind, row_bytes)
            limits = [capacity.highest(costs, workload, hosts, number) for hosts in ([PARTS], APART)]
            lines.append([f"{kind}, {number}", *(f"{limit.rows:,.0f}: {limit.by}" for limit in limits)])
    title = (
        "The highest rate of one service from end to end with `local[N]`, rows/s, and what limits it, by cores of each "
        "host:"
    )
    heads = ["", "everything on one host", "MySQL, producer, Kafka, Spark, PostgreSQL on a host each"]
    return title + "\n\n" + _table(heads, lines)


def waits(costs: Costs) -> str:
    """Latency by load."""
    lines = []
    rows = KINDS[queueing.KIND]
    limit = queueing.saturation(costs, rows)
    for load in LOADS:
        rate = load * limit
        cells = [_percentiles(queueing.latencies(costs, rate, rows, burst, 10.0)) for burst in (1, BURST)]
        lines.append([f"{load:.0%} ({rate:,.0f} transactions/s)", *cells])
    title = (
        f"Milliseconds from commit to visible in PostgreSQL (p50 / p95 / p99) by load of the busiest part, `oltp`, "
        f"simulated with a Kafka transaction of {costs.kafka_ms:.0f} ms, a fetch of {costs.fetch_ms:.0f} ms (where "
        f"more comes, a micro-batch of {costs.batch_ms:.0f} ms) and a commit of {costs.commit_ms:.0f} ms at least, "
        "each part on cores of its own:"
    )
    return title + "\n\n" + _table(["load", "one by one, at random", f"in bursts of {BURST}"], lines)


def held(costs: Costs) -> str:
    """The model compared with measurements."""
    lines = []
    for case, measured in costs.rates.items():
        half = capacity.TO_KAFKA if case.startswith(PRODUCE) else capacity.TO_TARGET
        workload = Workload(0, case.split(", ")[1], costs.row_bytes)
        said = capacity.highest(costs, workload, [half], 2)
        lines.append(
            [f"{case}, rows/s on 2 cores", f"{said.rows:,.0f}", f"{measured:,.0f}", f"{said.rows / measured:.2f}"]
        )
    for case, cuts in costs.latencies.items():
        found = queueing.percentiles(queueing.latencies(costs, transactions(case), LIVE_ROWS))
        lines += [
            [f"{case}, {name} ms", f"{ours:.0f}", f"{theirs:.0f}", f"{ours / theirs:.2f}"]
            for name, ours, theirs in zip(("p50", "p95", "p99"), found, cuts, strict=True)
        ]
    title = (
        "The model against what was measured on the one machine. It knows CPU and the least times of turns, so what a "
        "machine waits for or gives to others it does not see: its rates are upper bounds, its p99 a lower one. The "
        "p50 at the lowest rate is what it was fitted to:"
    )
    return title + "\n\n" + _table(["", "model", "measured", "ratio"], lines)


def _percentiles(found: Sequence[float]) -> str:
    return " / ".join(f"{cut:,.0f}" for cut in queueing.percentiles(found))


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
