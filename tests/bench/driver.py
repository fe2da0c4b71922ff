"""`python -m tests.bench.driver`: the CPU of `thl apply`'s own process a million rows: writing, and all besides.

Spark's JVM and its Python workers are other processes. Writing is what happens within the PostgreSQL target: encoding
for COPY, and psycopg. See `tests.bench.split`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from connector.demo.stage import Worker
from tests.bench import workload
from tests.bench.course import WARM_ROWS, WARM_SHARE
from tests.bench.drain import APPLIED, drain
from tests.bench.proof import TargetProof
from tests.bench.result import Row, Sheet, out_option
from tests.bench.site import Service, Site, Values, site
from tests.bench.throughput import produced
from tests.support.servers.spark_cluster import EXECUTOR_MEMORY, SparkCluster

KINDS = ("oltp", "bulk", "cold")
PROCESS = {"driver": "python* -m tests.bench.split *"}


def figures(lines: Sequence[dict[str, float]]) -> dict[str, float]:
    """CPU seconds per million rows after the warm-up, by what they were for."""
    last = lines[-1]
    warm = min(WARM_ROWS, last["rows"] / WARM_SHARE)
    first = next(line for line in lines if line["rows"] >= warm)
    rows = last["rows"] - first["rows"]
    spent = {name: (last[name] - first[name]) / rows * 1e6 for name in ("process", "applying", "writing")}
    return {
        "rows": rows,
        "rows a commit": rows / (len(lines) - 1 - lines.index(first)),
        "CPU s/M driver": spent["process"],
        "of it writing": spent["writing"],
        "besides writing": spent["process"] - spent["writing"],
        "of that applying": spent["applying"] - spent["writing"],
        "reading and deciding": spent["process"] - spent["applying"],
    }


@contextmanager
def cluster(place: Site, executors: int) -> Iterator[Values]:
    """A cluster with so many executors, and the settings to use it; without executors tasks run in the driver's JVM."""
    if not executors:
        yield {}
        return
    with SparkCluster(place.folder / "cluster", executors) as started:
        spark = place.values["apply"]["spark"] | {"spark.executor.memory": EXECUTOR_MEMORY}
        yield {"master": started.url, "spark": spark}


def measured(place: Site, service: Service, batch_bytes: int, settings: Values, goal: int) -> dict[str, float]:
    """Apply a log; return the driver's figures."""
    lines = place.folder / "split.jsonl"
    worker, gauges = service.worker("apply", apply={**settings, "batch_bytes": batch_bytes})
    split = Worker("apply", worker.config, worker.config.with_suffix(".log"), module=("tests.bench.split", str(lines)))
    drain({}, split, gauges, counter=APPLIED, goal=goal, parts=PROCESS)
    return {name: round(value, 3) for name, value in figures([*map(json.loads, lines.open())]).items()}


@click.command()
@click.option("--rows", default=3_000_000, show_default=True, help="Row changes of the backlog.")
@click.option("--kind", type=click.Choice(KINDS), default="oltp", show_default=True)
@click.option("--executors", default=0, show_default=True, help="Of a Spark cluster of this machine; 0: no cluster.")
@click.option("--batch-megabytes", default=120, show_default=True, help="apply.batch_bytes: 120: 250,000 oltp rows.")
@out_option
def main(*, rows: int, kind: str, executors: int, batch_megabytes: int, out: Path) -> None:
    """Measure; exit 1 if the figures are void."""
    sheet = Sheet(out, "driver", {"rows": rows, "batch megabytes": batch_megabytes, "executors": executors})
    with site() as place:
        backlog = workload.fill(place.connect, kind, rows)
        service = place.service("driver")
        produced(place, service, kind, backlog)
        with cluster(place, executors) as settings:
            found = measured(place, service, batch_megabytes << 20, settings, backlog.rows)
        sheet.add(Row(f"the applier's driver, {kind}", found, TargetProof().check(service.config)))
    sys.exit(0 if sheet.valid else 1)


if __name__ == "__main__":
    main()
