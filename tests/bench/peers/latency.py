"""Milliseconds from commit to readable in Kafka and to visible in PostgreSQL, for each peer and the connector."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tests.bench import latency
from tests.bench.live import Live
from tests.bench.meter import Meter
from tests.bench.peers import jdbc_sink, relay
from tests.bench.peers.connect import Connect
from tests.bench.peers.debezium import source
from tests.bench.peers.peer import Unavailable
from tests.bench.peers.spectator import Spectator, committed
from tests.bench.peers.topic import Topic
from tests.bench.result import Row, Sheet
from tests.bench.site import CLOCK, Site, site
from tests.bench.workload import SCHEMA

_SETTLE = 3.0  # seconds in which what is on its way may arrive
_IDS = 10**9  # of each chain
TUNED = {"poll.interval.ms": "1", "producer.override.linger.ms": "0"}


@dataclass(frozen=True, slots=True)
class Running:
    """A running pipeline.

    Args:
        pid: process id.
        topic: topic of its rows.
        table: in PostgreSQL; empty: none.
    """

    pid: int | None
    topic: str
    table: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of latency measurements.

    Args:
        rate: transactions a second.
        seconds: that count.
        warm: seconds before them.
    """

    rate: int
    seconds: float
    warm: float


def run(sheet: Sheet, plan: Plan) -> None:
    """Run every pipeline on the same servers, one after the other; then the connector alone."""
    with site() as place:
        chains = {
            "go-mysql canal + franz-go, linger 0": _relay(place),
            "Debezium + JDBC sink, default": _debezium(place, "default", {}),
            "Debezium + JDBC sink, tuned low": _debezium(place, "tuned", TUNED),
        }
        for number, (label, chain) in enumerate(chains.items()):
            try:
                found = _measure(place, chain, plan, number * _IDS)
            except Unavailable as reason:
                found = {"": Row("", {}, f"skipped: {reason}")}
            for where, row in found.items():
                sheet.add(Row(f"commit to {where or 'Kafka'}, {plan.rate}/s: {label}", row.figures, row.void))
    latency.run(sheet, [plan.rate], plan.seconds, plan.warm)


@contextmanager
def _relay(place: Site) -> Iterator[Running]:
    topic = _topic(place, "latency.relay")
    program = relay.relay(place, "oltp", topic, "-linger=0")
    program.start()
    try:
        yield Running(program.pid, topic)
        relay.check(program)
    finally:
        program.stop()


@contextmanager
def _debezium(place: Site, name: str, tuning: Mapping[str, str]) -> Iterator[Running]:
    """Source and sink in one worker; schemas in every message, which the sink needs."""
    topic = _topic(place, f"{name}.{SCHEMA}.oltp")
    table = f"latency_{name}"
    with Connect(place, f"latency-{name}") as worker:
        more = {"snapshot.mode": "no_data", **tuning}
        worker.create(f"{name}-source", source(place, name, f"{SCHEMA}.oltp", **more))
        worker.create(f"{name}-sink", jdbc_sink.sink(jdbc_sink.postgres(place), topic, table))
        yield Running(worker.pid, topic, table)
        for kind in ("source", "sink"):
            worker.check(f"{name}-{kind}")


def _topic(place: Site, name: str) -> str:
    topic = Topic(place.kafka.bootstrap, name)
    topic.create()
    topic.close()
    return name


def _measure(place: Site, chain: AbstractContextManager[Running], plan: Plan, first: int) -> dict[str, Row]:
    with chain as running:
        spectator = Spectator(place, running.topic, running.table, first)
        try:
            with Live(place.connect, plan.rate, first=first):
                CLOCK.sleep(plan.warm)
                meter = Meter(running.pid)
                since, before = CLOCK.now(), meter.read()
                CLOCK.sleep(plan.seconds)
                until, spent = CLOCK.now(), meter.read() - before
            CLOCK.sleep(_SETTLE)
        finally:
            spectator.end()
    times = committed(place, first, first + _IDS)
    counted = {number: at for number, at in times.items() if since <= at < until}
    usage = {"CPU % peer": round(spent.cpu_seconds / plan.seconds * 100, 1), "peak MB peer": round(spent.peak / 1e6)}
    found = {"Kafka": _row(counted, spectator.in_kafka, usage)}
    if running.table:
        found["PostgreSQL"] = _row(counted, spectator.in_target, usage)
    return found


def _row(committed_at: Mapping[int, int], seen: Mapping[int, int], usage: Mapping[str, float]) -> Row:
    late = [(seen[number] - at) / 1000 for number, at in committed_at.items() if number in seen]
    if len(late) < 2:
        return Row("", {}, "hardly any transaction was seen")
    cuts = statistics.quantiles(late, n=100)
    figures = {"events": float(len(late)), "p50 ms": cuts[49], "p95 ms": cuts[94], "p99 ms": cuts[98], **usage}
    missing = len(committed_at) - len(late)
    return Row("", figures, f"{missing} transactions were not seen" if missing else "")
