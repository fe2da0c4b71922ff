"""Milliseconds from commit to readable in Kafka and to visible in PostgreSQL, at steady rates of transactions."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg

from connector.demo.stage import Worker
from tests.bench.drain import APPLIER
from tests.bench.live import Live
from tests.bench.meter import Meter
from tests.bench.proof import differs
from tests.bench.result import Row, Sheet
from tests.bench.site import CLOCK, Service, Site, site
from tests.bench.witness import Witness

_SETTLE = 3.0  # seconds in which what is on its way may arrive
_PATIENCE = 120.0
_FIRST = 10**9  # ids of each rate's rows begin at a multiple of this


@dataclass(frozen=True, slots=True)
class Pair:
    """A running producer and applier, and their service."""

    place: Site
    service: Service
    producer: Worker
    applier: Worker

    def check(self) -> None:
        """Raise if a process has ended."""
        for worker in (self.producer, self.applier):
            worker.check()

    def meters(self) -> dict[str, Meter]:
        """The meters of all processes."""
        return {
            "producer": Meter(self.producer.pid),
            **{name: Meter(self.applier.pid, program) for name, program in APPLIER.items()},
            **self.place.servers(),
        }


def run(sheet: Sheet, rates: Sequence[int], seconds: float, warm: float) -> None:
    """Start everything once; then run each rate for `seconds`, after `warm` seconds that are not counted."""
    with site() as place:
        service = place.service("latency", source={"start": "snapshot"})
        pair = Pair(place, service, service.worker("produce")[0], service.worker("apply")[0])
        pair.producer.start()
        pair.applier.start()
        _await_load(pair)
        rows: list[Row] = []
        for number, rate in enumerate(rates, 1):
            rows += _at(pair, Live(place.connect, rate, first=number * _FIRST), seconds, warm)
        why = differs(service.config)
        pair.check()
        pair.applier.stop()
        pair.producer.stop()
    for row in rows:
        sheet.add(Row(row.case, row.figures, row.void or why))


def _at(pair: Pair, live: Live, seconds: float, warm: float) -> list[Row]:
    """Measure one rate."""
    meters = pair.meters()
    witness = Witness(pair.service)
    try:
        with live:
            CLOCK.sleep(warm)
            since = CLOCK.now()
            before = {name: meter.read() for name, meter in meters.items()}
            CLOCK.sleep(seconds)
            until = CLOCK.now()
            spent = {name: meter.read() - before[name] for name, meter in meters.items()}
            pair.check()
        CLOCK.sleep(_SETTLE)
    finally:
        witness.end()
    usage = {f"CPU % {name}": round(used.cpu_seconds / seconds * 100, 1) for name, used in spent.items()}
    usage |= {f"peak MB {name}": round(used.peak / 1e6) for name, used in spent.items()}
    counted = {seqno: at for seqno, at in witness.committed.items() if since <= at < until}
    usage["committed/s"] = round(len(counted) / seconds)
    return [
        _row(f"commit to Kafka, {live.rate}/s", counted, witness.in_kafka, {}),
        _row(f"commit to PostgreSQL, {live.rate}/s", counted, witness.in_target, usage),
    ]


def _row(case: str, committed: Mapping[int, int], seen: Mapping[int, int], more: dict[str, float]) -> Row:
    late = [(seen[seqno] - at) / 1000 for seqno, at in committed.items() if seqno in seen]
    missing = len(committed) - len(late)
    if len(late) < 2:
        return Row(case, {"events": len(late)}, "hardly any event was seen")
    cuts = statistics.quantiles(late, n=100)
    figures = {"events": float(len(late)), "p50 ms": cuts[49], "p95 ms": cuts[94], "p99 ms": cuts[98], **more}
    return Row(case, figures, f"{missing} events were not seen" if missing else "")


def _await_load(pair: Pair) -> None:
    """Wait for the end of the initial load of empty tables.

    Raises:
        TimeoutError: it does not come.
    """
    dsn = pair.service.config.target.url.get_secret_value()
    began = CLOCK.monotonic()
    with psycopg.connect(dsn, autocommit=True) as connection:
        while CLOCK.monotonic() - began < _PATIENCE:
            pair.check()
            try:
                found = connection.execute("SELECT consistent AND seqno >= 0 FROM thl.thl_position").fetchone()
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                found = None
            if found and found[0]:
                return
            CLOCK.sleep(0.2)
    raise TimeoutError("the initial load does not arrive")
