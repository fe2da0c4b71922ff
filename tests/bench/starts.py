"""`python -m tests.bench.starts`: start-up times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import psycopg

from tests.bench import workload
from tests.bench.drain import PUBLISHED
from tests.bench.result import Row, Sheet, out_option
from tests.bench.site import CLOCK, Service, site

_LOOK = 0.005  # seconds
_PATIENCE = 120.0
_ROWS = 1000
_EPOCH = "thl_epoch"


def help_seconds() -> float:
    """Seconds of `thl --help`, as a user calls it."""
    command = [str(Path(sys.executable).with_name("thl")), "--help"]
    began = CLOCK.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return CLOCK.monotonic() - began


def producer_seconds(service: Service) -> tuple[float, float]:
    """Seconds from the start of `thl produce` until it is online, and until its rows are acked; servers run."""
    worker, gauges = service.worker("produce")
    began = CLOCK.monotonic()
    worker.start()
    online = 0.0
    while CLOCK.monotonic() - began < _PATIENCE:
        worker.check()
        found = gauges.read()
        now = CLOCK.monotonic() - began
        if not online and found.get(_EPOCH, 0) > 0:
            online = now
        if found.get(PUBLISHED, 0) >= _ROWS:
            worker.stop()
            return online, now
        CLOCK.sleep(_LOOK)
    raise TimeoutError("the producer does not go online")


def applier_seconds(service: Service) -> float:
    """Seconds from the start of `thl apply` until a row is visible in its target."""
    worker, _ = service.worker("apply")
    dsn = service.config.target.url.get_secret_value()
    with psycopg.connect(dsn, autocommit=True) as connection:
        began = CLOCK.monotonic()
        worker.start()
        while CLOCK.monotonic() - began < _PATIENCE:
            worker.check()
            if connection.execute("SELECT to_regclass('bench.bulk')").fetchone() != (None,) and (
                connection.execute("SELECT 1 FROM bench.bulk LIMIT 1").fetchone()
            ):
                seconds = CLOCK.monotonic() - began
                worker.stop()
                return seconds
            CLOCK.sleep(_LOOK)
    raise TimeoutError("the applier applies nothing")


@click.command()
@click.option("--repeats", default=3, show_default=True, help="Of producer and applier.")
@click.option("--helps", default=20, show_default=True, help="Of `thl --help`.")
@out_option
def main(*, repeats: int, helps: int, out: Path) -> None:
    """Measure start-up times."""
    sheet = Sheet(out, "starts", {})
    for _ in range(helps):
        sheet.add(Row("thl --help", {"ms": help_seconds() * 1000}))
    with site() as place:
        workload.bulk(place.connect, first=0, rows=_ROWS)
        for repeat in range(repeats):
            service = place.service(f"starts{repeat}")
            online, acked = producer_seconds(service)
            sheet.add(Row("producer of a new log online", {"ms": online * 1000}))
            sheet.add(Row("producer's first rows acked", {"ms": acked * 1000}))
            sheet.add(Row("applier's first row visible", {"ms": applier_seconds(service) * 1000}))


if __name__ == "__main__":
    main()
