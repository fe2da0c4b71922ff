"""`python -m tests.bench.writers`: rates of the apply core into PostgreSQL by number of writers, near and far.

As `applying`, from memory: the log's messages are read and compacted in this process, and written by `target.writers`
connections. `--delay 0.02` lies between the connector and the server, in a proxy of its own process. Each run ends with
a comparison of the table's rows with those of the run of one writer.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click
import psycopg
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.sandbox.postgres import PostgresServer
from connector.targets.postgres.target import PostgresTarget
from tests.bench.applying import filled
from tests.bench.meter import usage
from tests.bench.recorded import Recording, record
from tests.bench.workload import SCHEMA
from tests.support.slow_proxy import slow_proxy

KINDS: Final = ("bulk", "cold")
WRITERS: Final = (1, 2, 4, 8)
DELAYS: Final = (0.0, 0.02)


def run(log: Recording, kind: str, writers: int, delay: float) -> tuple[dict[str, float], str]:
    """Apply a log once; return its figures, and the digest of the table."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="thl-writers-")))
        place.chmod(0o755)
        server = stack.enter_context(PostgresServer(place, die_with_parent=True))
        port = stack.enter_context(slow_proxy(server.host, server.port, delay)) if delay else server.port
        url = server.dsn.replace(f":{server.port}/", f":{port}/")
        target = PostgresTarget(SecretStr(url), SystemClock(), writers=writers, snapshot_interval=1.0)
        stack.callback(target.close)
        work = filled(log, target)
        pid = server.program.pid
        server_cpu, seconds, cpu = usage(pid).cpu_seconds, time.perf_counter(), time.process_time()
        work()
        seconds, cpu = time.perf_counter() - seconds, time.process_time() - cpu
        server_cpu = usage(pid).cpu_seconds - server_cpu
        with psycopg.connect(server.dsn) as reader:
            query = f"SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {SCHEMA}.{kind} t".encode()
            digest = str(reader.execute(query).fetchone())
    figures = {
        "rows/s": round(log.rows / seconds),
        "cpu µs per row": round(cpu / log.rows * 1e6, 2),
        "server cpu µs per row": round(server_cpu / log.rows * 1e6, 2),
    }
    return figures, digest


@click.command()
@click.option("--rows", default=400_000, show_default=True)
@click.option("--only", "kinds", type=click.Choice(KINDS), multiple=True, help="Workloads; all if not given.")
@click.option("--writers", "counts", type=int, multiple=True, help="Numbers of writers; 1, 2, 4, 8 if not given.")
@click.option("--delay", "delays", type=float, multiple=True, help="Seconds of a round trip; 0 and 0.02 if not given.")
def main(rows: int, kinds: tuple[str, ...], counts: tuple[int, ...], delays: tuple[float, ...]) -> None:
    """Print a line per workload, delay and number of writers; exit 1 if two runs of a log end differently."""
    print(f"{os.cpu_count()} cores")
    for kind in kinds or KINDS:
        log = record(kind, rows, Path(tempfile.gettempdir()))
        digests = set()
        for delay in delays or DELAYS:
            for writers in counts or WRITERS:
                figures, digest = run(log, kind, writers, delay)
                digests.add(digest)
                values = " | ".join(f"{key} {value:,.6g}" for key, value in figures.items())
                print(f"| {kind} | {delay * 1000:.0f} ms | {writers} writers | {values} |", flush=True)
        if len(digests) > 1:
            raise SystemExit(f"{kind}: the tables differ: {digests}")


if __name__ == "__main__":
    main()
