"""`python -m tests.bench.catch_up`: a target far behind catches up under a live load, in bounded memory.

It says meanwhile when it will be done (`thl_catch_up_seconds`); the figures hold what that was worth.
"""

from __future__ import annotations

import math
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import click

from connector.demo.stage import Worker
from tests.bench import workload
from tests.bench.checksum import difference
from tests.bench.drain import APPLIED, APPLIER, PUBLISHED, Stuck
from tests.bench.gauges import Gauges
from tests.bench.live import Live
from tests.bench.meter import Meter
from tests.bench.result import Row, Sheet, out_option
from tests.bench.site import CLOCK, site
from tests.bench.tables import OURS
from tests.bench.workload import Backlog

_EVERY = 0.5  # seconds
_AFTER = 10.0  # seconds for which the target has to stay there
_PATIENCE = 600.0
_FIRST = 10**9  # ids of the live load
_COMPARED = ("id", "a", "b", "c", "g", "h")


@dataclass(slots=True)
class Log:
    """The observations, by seconds since the applier's start.

    Args:
        at: seconds.
        behind: rows that the log has and the target has not.
        left: the applier's own estimate, in seconds; NaN where it told none.
        memory: process → megabytes resident.
    """

    at: list[float] = field(default_factory=list)
    behind: list[float] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    memory: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in OURS})

    def series(self) -> dict[str, list[float]]:
        """The result's form of a series: JSON has no NaN, so -1 means unknown."""
        told = [-1.0 if math.isnan(left) else left for left in self.left]
        memory = {f"MB {name}": values for name, values in self.memory.items()}
        return {"s": self.at, "rows behind": self.behind, "estimate s": told, **memory}

    def worth(self, done: float) -> float | None:
        """Median ratio of estimated to actual time, while more than five seconds were left."""
        pairs = [(left, done - at) for at, left in zip(self.at, self.left, strict=True)]
        ratios = [left / real for left, real in pairs if real > 5 and not math.isnan(left)]
        return statistics.median(ratios) if ratios else None

    def growth(self, name: str) -> float:
        """Memory at the end divided by memory when half of the lag was applied."""
        most = max(self.behind)
        begun = self.behind.index(most)
        middle = next(n for n in range(begun, len(self.at)) if self.behind[n] <= most / 2)
        return self.memory[name][-1] / max(self.memory[name][middle], 1.0)


@dataclass(frozen=True, slots=True)
class Watch:
    """Observes both workers while the applier catches up."""

    producer: Worker
    published: Gauges
    applier: Worker
    applied: Gauges

    def until_caught_up(self, log: Log, near: float) -> tuple[float, float]:
        """Seconds from the applier's start to its first row, and to the time from which it stayed `near` the end."""
        meters = {
            **{name: Meter(self.applier.pid, program) for name, program in APPLIER.items()},
            "producer": Meter(self.producer.pid),
        }
        began = CLOCK.monotonic()
        first = done = 0.0
        while CLOCK.monotonic() - began < _PATIENCE:
            self.producer.check()
            self.applier.check()
            found = self.applied.read()
            applied = found.get(APPLIED, 0.0)
            now = CLOCK.monotonic() - began
            if applied and not first:
                first = now
            log.at.append(round(now, 2))
            log.behind.append(self.published.value(PUBLISHED) - applied)
            log.left.append(found.get("thl_catch_up_seconds", math.nan) if applied else math.nan)
            for name, meter in meters.items():
                log.memory[name].append(round(meter.read().resident / 1e6))
            if log.behind[-1] > near:
                done = 0.0
            elif applied and not done:
                done = now
            if done and now - done >= _AFTER:
                return first, done
            CLOCK.sleep(_EVERY)
        raise Stuck(f"{log.behind[-1]:.0f} rows are behind after {_PATIENCE:.0f} s\n{self.applier.log_tail()}")

    def until_equal(self) -> None:
        """Wait for the last rows of the load, which has ended."""
        began = CLOCK.monotonic()
        same = 0
        while same < 3 and CLOCK.monotonic() - began < _PATIENCE:
            CLOCK.sleep(_EVERY)
            same = same + 1 if self.published.value(PUBLISHED) == self.applied.value(APPLIED) else 0

    def until_published(self, backlog: Backlog) -> None:
        """Wait for the producer."""
        while self.published.value(PUBLISHED) < backlog.rows:
            self.producer.check()
            CLOCK.sleep(0.1)


def run(sheet: Sheet, kind: str, rows: int, rate: int) -> None:
    """Measure once."""
    with site() as place:
        backlog = workload.fill(place.connect, kind, rows)
        service = place.service("late")
        watch = Watch(*service.worker("produce"), *service.worker("apply"))
        watch.producer.start()
        watch.until_published(backlog)
        log = Log()
        with Live(place.connect, rate, first=_FIRST) as live:
            watch.applier.start()
            first, done = watch.until_caught_up(log, near=rate * 3.0)
        watch.until_equal()
        servers = place.servers()
        peaks = {name: meter.read().peak for name, meter in servers.items()}
        dsn = service.config.target.url.get_secret_value()
        why = difference(place.connect, dsn, [f"{workload.SCHEMA}.{name}" for name in workload.KINDS], _COMPARED)
        watch.applier.stop()
        watch.producer.stop()
    figures = {
        "rows behind": float(backlog.rows),
        "s to first row": first,
        "s to caught up": done,
        "rows/s": (backlog.rows + live.rows * (done - first) / log.at[-1]) / max(done - first, 1e-9),
        **{f"peak MB {name}": max(values) for name, values in log.memory.items()},
        **{f"MB {name}, end by middle": round(log.growth(name), 3) for name in APPLIER},
        **{f"peak MB {name}": round(peak / 1e6) for name, peak in peaks.items()},
    }
    worth = log.worth(done)
    if worth is not None:
        figures["estimate by real"] = round(worth, 2)
    sheet.add(Row(f"{kind}, {rate}/s live", figures, why, log.series()))


@click.command()
@click.option("--rows", default=5_000_000, show_default=True, help="So many row changes the target is behind.")
@click.option("--rate", default=2000, show_default=True, help="Transactions a second of the live load.")
@click.option("--kind", default="oltp", type=click.Choice(workload.KINDS), show_default=True, help="Of the backlog.")
@out_option
def main(*, rows: int, rate: int, kind: str, out: Path) -> None:
    """Measure; exit 1 if source and target differ afterwards."""
    sheet = Sheet(out, "catch-up", {"rows": rows, "rate": rate, "kind": kind})
    run(sheet, kind, rows, rate)
    sys.exit(0 if sheet.valid else 1)


if __name__ == "__main__":
    main()
