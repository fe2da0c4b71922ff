"""`python -m tests.bench.semi_sync`: what `source.semi_sync` costs a commit, for one client and at a steady rate.

Each case runs without it and with it in turns, with a producer that follows either way. The server syncs its logs at
every commit.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from typing import Final

import click

from connector.mysql.server.connection import session
from connector.mysql.server.semi_sync import SemiSyncState, read_state
from tests.bench.paced_commits import CLIENTS, commits
from tests.bench.result import Row, Sheet, out_option
from tests.bench.site import Service, Site, site

DURABLE: Final = {"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1"}
PATIENCE: Final = 60.0
INSERT: Final = "INSERT INTO bench.commits (v) VALUES (REPEAT('g', 90))"


@click.command()
@click.option("--seconds", default=15.0, show_default=True, help="Duration of each measurement.")
@click.option("--rate", "rates", type=int, multiple=True, default=(200,), help="Commits a second of several clients.")
@click.option("--repeats", default=2, show_default=True)
@out_option
def main(*, seconds: float, rates: Sequence[int], repeats: int, out: Path) -> None:
    """Measure commits; exit 1 if a figure is void."""
    sheet = Sheet(out, "semi-sync", {"seconds": seconds})
    with site(DURABLE) as place:
        _execute(
            place,
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
            "SET GLOBAL rpl_semi_sync_source_timeout = 60000",
            "CREATE TABLE commits (id BIGINT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200))",
        )
        for repeat in range(repeats):
            for on in (False, True):
                _measure(sheet, place, seconds, rates, on=on, name=f"{'on' if on else 'off'}{repeat}")
    sys.exit(0 if sheet.valid else 1)


def _measure(sheet: Sheet, place: Site, seconds: float, rates: Sequence[int], *, on: bool, name: str) -> None:
    service = place.service(name, source={"start": "now", "semi_sync": on})
    producer, gauges = service.worker("produce")
    _execute(place, f"SET GLOBAL rpl_semi_sync_source_enabled = {'ON' if on else 'OFF'}")
    producer.start()
    try:
        give_up = time.monotonic() + PATIENCE
        while not gauges.read().get("thl_epoch"):
            if time.monotonic() > give_up:
                raise RuntimeError("the producer did not go online")
            time.sleep(0.1)
        for rate in (0, *rates):
            before = _state(service)
            took = commits(place.connect, lambda _: INSERT, seconds, rate)
            after = _state(service)
            waited = after.waited > before.waited and after.not_waited == before.not_waited
            cuts = quantiles(took, n=100)
            figures = {"p50 ms": cuts[49], "p95 ms": cuts[94], "p99 ms": cuts[98], "commits/s": len(took) / seconds}
            case = f"{f'{rate}/s, {CLIENTS} clients' if rate else 'one client'}, semi_sync {'on' if on else 'off'}"
            sheet.add(Row(case, figures, "" if waited == on else f"before {before}, after {after}"))
        producer.check()
        producer.stop()
    finally:
        _execute(place, "SET GLOBAL rpl_semi_sync_source_enabled = OFF")


def _execute(place: Site, *statements: str) -> None:
    with place.connect() as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        cursor.execute("USE bench")
        for statement in statements:
            cursor.execute(statement)


def _state(service: Service) -> SemiSyncState:
    with session(service.config.source) as connection:
        found = read_state(connection)
    assert found is not None
    return found


if __name__ == "__main__":
    main()
