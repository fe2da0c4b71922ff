"""`python -m tests.bench.relay`: what a relay costs: CPU and rate while a backlog is applied, and the sync of a commit.

First without servers: the CPU of the records of a million oltp rows in the tasks and in the driver. Then the same log
is applied to fresh PostgreSQL databases, by turns without and with a relay. Prints its results.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from connector.log.compact.scan import Scanner
from connector.log.compact.segment import Segment
from connector.log.epochs.history import History
from connector.log.ids import NO_SEQNO, LogId, Seqno
from connector.log.transaction.position import TargetPosition
from connector.relay.folder import Owner
from connector.relay.spool import RecordSpool
from connector.relay.writer import RelayWriter
from connector.spark.stream.segment_builder import SegmentBuilder
from tests.bench import throughput, workload
from tests.bench.proof import TargetProof
from tests.bench.result import Row
from tests.bench.site import CLOCK, Service, merged, site
from tests.support.fragments import batch, change, encoded, record

MILLION_ROWS: Final = 458_000_000  # bytes of the records
EVENTS: Final = 20_000  # of a segment


@click.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--kind", default="oltp", type=click.Choice(workload.KINDS), show_default=True)
@click.option("--alone", is_flag=True, help="Without servers.")
@click.option("--commits", default=1000, show_default=True, help="Commits of one small transaction, each synced.")
def main(rows: int, repeats: int, kind: str, commits: int, alone: bool) -> None:
    """Measure."""
    for _ in range(repeats):
        with TemporaryDirectory(dir=".") as folder:
            records_of(Path(folder))
    if alone:
        return
    with site() as place:
        sync_of(place.folder / "alone", commits)
        backlog = workload.fill(place.connect, kind, rows)
        service = place.service(kind)
        show(throughput.produced(place, service, kind, backlog))
        proof = TargetProof()
        for repeat in range(repeats):
            for name in ("without", "with"):
                aimed = place.retarget(service, f"{kind}{repeat}{name}", "postgresql")
                relay = {"relay": {"dir": str(place.folder / f"relay{repeat}")}} if name == "with" else {}
                aimed = Service(aimed.folder, aimed.name, merged(aimed.values, relay))
                show(throughput.applied(place, aimed, f"{kind}, {name} a relay", backlog, proof))


def show(row: Row) -> None:
    """Print a case."""
    print(row.case, {name: round(value, 3) for name, value in row.figures.items()}, flush=True)


def records_of(folder: Path) -> None:
    """Print the CPU seconds of the records of a million oltp rows, in tasks and in the driver.

    One segment stands for all: its records are written again and again, each time as the next events.
    """
    made = [encoded(record(n, [change("insert", [(None, [n, "x" * 380])])])) for n in range(EVENTS)]
    builder = SegmentBuilder("bench", 0)
    builder.add(batch(made))
    (segment,) = builder.finish()
    (messages,) = Scanner("bench").scan(batch(made))
    if not isinstance(segment, Segment):
        raise TypeError("the messages were not compacted")
    taken = {"tasks": 0.0, "driver": 0.0, "sync": 0.0}
    writer = RelayWriter(folder / "relay", max_file_bytes=10 << 20, retention=0, clock=CLOCK)
    writer.begin(TargetPosition(service="bench"), History(LogId("0" * 32), (), NO_SEQNO), None, Owner(1))
    size = seqno = 0
    while size < MILLION_ROWS:
        ends = array("q")
        with measured(taken, "tasks"), RecordSpool(folder) as spool:
            spool.add_range(0, ends, messages, 0, EVENTS)
            stored = spool.since(0)
        events = range(seqno, seqno + EVENTS)
        with measured(taken, "driver"):
            writer.add_segments([replace(segment, seqnos=events, records=stored.opened({}), record_ends=ends)])
        with measured(taken, "sync"):
            writer.sync_soon()
            writer.sync()
        seqno += EVENTS
        writer.committed(Seqno(seqno - 1))
        size += spool.size
    writer.close()
    rounded = {name: round(one, 3) for name, one in taken.items()}
    print("CPU s of the records of a million oltp rows:", rounded, flush=True)


@contextmanager
def measured(taken: dict[str, float], name: str) -> Iterator[None]:
    """Add the CPU seconds of this process."""
    began = time.process_time()
    yield
    taken[name] += time.process_time() - began


def sync_of(folder: Path, commits: int) -> None:
    """Print how long a commit of one transaction waits for the disk."""
    writer = RelayWriter(folder, max_file_bytes=10 << 20, retention=0, clock=CLOCK)
    writer.begin(TargetPosition(service="bench"), History(LogId("0" * 32), (), NO_SEQNO), None, Owner(1))
    rows = [(None, [number, "x" * 200]) for number in range(8)]
    taken = []
    for seqno in range(commits):
        (messages,) = Scanner("bench").scan(batch([encoded(record(seqno, [change("insert", rows)]))], offset=seqno))
        began = CLOCK.monotonic()
        writer.add_range(messages, 0, 1)
        writer.sync_soon()
        writer.sync()
        taken.append(CLOCK.monotonic() - began)
    writer.close()
    taken.sort()
    at = {f"p{part}": round(taken[len(taken) * part // 100] * 1e3, 2) for part in (50, 95, 99)}
    print(f"{commits} commits of one transaction, ms until it is on the disk: {at}", flush=True)


if __name__ == "__main__":
    main()
