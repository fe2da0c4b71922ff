"""Rows per second: from a filled binary log to acked in Kafka, and from there into each target."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tests.bench import workload
from tests.bench.course import Course
from tests.bench.drain import APPLIED, APPLIER, PRODUCER, PUBLISHED, drain
from tests.bench.proof import TargetProof, log_proof, operations
from tests.bench.result import Row, Sheet
from tests.bench.site import Service, Site, site
from tests.bench.workload import Backlog

TARGETS = ("postgresql", "sqlite")
NAMES = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}
SQLITE_KINDS = ("bulk", "oltp")


@dataclass(frozen=True, slots=True)
class Plan:
    """The measurements of a run.

    Args:
        rows: row changes of each backlog.
        repeats: repeats of each case, with a new log and target but the same binary log.
        kinds: workloads.
        targets: behind Kafka.
    """

    rows: int
    repeats: int
    kinds: Collection[str] = workload.KINDS
    targets: Collection[str] = TARGETS


def run(sheet: Sheet, plan: Plan) -> None:
    """Measure everything; every kind has fresh servers."""
    for kind in plan.kinds:
        with site() as place:
            backlog = workload.fill(place.connect, kind, plan.rows)
            proof = TargetProof()
            for repeat in range(plan.repeats):
                service = place.service(f"{kind}{repeat}")
                sheet.add(produced(place, service, kind, backlog))
                for target in plan.targets:
                    if target == "sqlite" and kind not in SQLITE_KINDS:
                        continue
                    aimed = place.retarget(service, f"{kind}{repeat}{target}", target)
                    sheet.add(applied(place, aimed, f"Kafka to {NAMES[target]}, {kind}", backlog, proof))


def produced(place: Site, service: Service, kind: str, backlog: Backlog) -> Row:
    """Run one producer from the beginning of the binary log to the end of the backlog."""
    worker, gauges = service.worker("produce")
    course = drain(place.servers(), worker, gauges, counter=PUBLISHED, goal=backlog.rows, parts=PRODUCER)
    return Row(f"MySQL to Kafka, {kind}", course.figures(), log_proof(service.config, backlog))


def applied(place: Site, service: Service, case: str, backlog: Backlog, proof: TargetProof) -> Row:
    """Run one applier from the beginning of the log to the end of the backlog, into a fresh target."""
    worker, gauges = service.worker("apply")
    goal, before = backlog.rows, backlog.before
    course = drain(place.servers(), worker, gauges, counter=APPLIED, goal=goal, parts=APPLIER, before=before)
    return Row(case, {**course.figures(), **_survivors(service, course)}, proof.check(service.config))


def _survivors(service: Service, course: Course) -> dict[str, float]:
    """The share of read rows that reached the target's tables: the rest was compacted within a batch."""
    config = service.config
    if not config.target.url.get_secret_value().startswith("postgresql"):
        return {}
    return {"survive %": round(operations(config) / course.looks[-1].rows * 100, 1)}
