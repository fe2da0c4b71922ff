"""`python -m tests.bench.executors`: `thl apply` on a Spark cluster of this machine, by number of executors.

All processes share the machine's cores: the rates say what the cluster costs, not what machines of its own would give.
The CPU of each process does not depend on that, and is what `tests.bench.scale` computes with.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tests.bench import workload
from tests.bench.drain import APPLIED, APPLIER, drain
from tests.bench.meter import Meter
from tests.bench.proof import TargetProof
from tests.bench.result import Row, Sheet, out_option
from tests.bench.site import site
from tests.bench.throughput import produced
from tests.support.servers.spark_cluster import EXECUTOR, EXECUTOR_MEMORY, SparkCluster

NUMBERS = (1, 2, 4)
KIND = "oltp"
# Started by the cluster's workers, whom this process starts.
EXECUTORS = {"executors": f"java *{EXECUTOR}*", "workers": "python* -m pyspark.daemon *"}


def run(sheet: Sheet, rows: int, numbers: Sequence[int]) -> None:
    """Apply the same log with each number of executors, each time into a fresh target."""
    with site() as place:
        backlog = workload.fill(place.connect, KIND, rows)
        service = place.service("executors")
        produced(place, service, KIND, backlog)
        proof = TargetProof()
        for number in numbers:
            aimed = place.retarget(service, f"executors{number}", "postgresql")
            with SparkCluster(place.folder / f"cluster-{number}", number) as cluster:
                spark = place.values["apply"]["spark"] | {"spark.executor.memory": EXECUTOR_MEMORY}
                worker, gauges = aimed.worker("apply", apply={"master": cluster.url, "spark": spark})
                meters = {name: Meter(os.getpid(), program) for name, program in EXECUTORS.items()}
                own = {name: APPLIER[name] for name in ("driver", "JVM")}
                course = drain(place.servers() | meters, worker, gauges, counter=APPLIED, goal=backlog.rows, parts=own)
            case = f"Kafka to PostgreSQL, {KIND}, {number} executors"
            sheet.add(Row(case, course.figures(), proof.check(aimed.config)))


@click.command()
@click.option("--rows", default=3_000_000, show_default=True, help="Row changes of the backlog.")
@click.option("--executors", "numbers", multiple=True, type=int, default=NUMBERS, show_default=True)
@out_option
def main(*, rows: int, numbers: Sequence[int], out: Path) -> None:
    """Measure; exit 1 if a figure is void."""
    sheet = Sheet(out, "executors", {"rows": rows})
    run(sheet, rows, numbers)
    sys.exit(0 if sheet.valid else 1)


if __name__ == "__main__":
    main()
