"""The connector on the same servers: the rows of `tests.bench.throughput`, each run with its proof."""

from __future__ import annotations

from dataclasses import replace

from tests.bench import throughput
from tests.bench.peers.peer import Load
from tests.bench.proof import TargetProof
from tests.bench.result import Row


def measure(load: Load) -> list[Row]:
    """Measure the producer, then the applier on its log."""
    service = load.place.service(f"ours_{load.kind}")
    made = throughput.produced(load.place, service, load.kind, load.backlog)
    case = f"Kafka to PostgreSQL, {load.kind}"
    taken = throughput.applied(load.place, service, case, load.backlog, TargetProof())
    return [replace(row, case=f"{row.case}: ours") for row in (made, taken)]
