"""`python -m tests.bench.relay`: what a relay costs: CPU and rate while a backlog is applied, and the sync of a commit.

The same log is applied to fresh PostgreSQL databases, by turns without and with a relay. Prints its results.
"""

from __future__ import annotations

from pathlib import Path

import click

from connector.log.compact.scan import Scanner
from connector.log.epochs.history import History
from connector.log.ids import NO_SEQNO, LogId
from connector.log.transaction.position import TargetPosition
from connector.relay.writer import RelayWriter
from tests.bench import throughput, workload
from tests.bench.proof import TargetProof
from tests.bench.result import Row
from tests.bench.site import CLOCK, Service, merged, site
from tests.support.fragments import batch, change, encoded, record


@click.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--kind", default="oltp", type=click.Choice(workload.KINDS), show_default=True)
@click.option("--commits", default=1000, show_default=True, help="Commits of one small transaction, each synced.")
def main(rows: int, repeats: int, kind: str, commits: int) -> None:
    """Measure."""
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


def sync_of(folder: Path, commits: int) -> None:
    """Print how long a commit of one transaction waits for the disk."""
    writer = RelayWriter(folder, max_file_bytes=10 << 20, retention=0, clock=CLOCK)
    writer.begin(TargetPosition(service="bench"), History(LogId("0" * 32), (), NO_SEQNO), None, 1)
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
