"""`python -m tests.bench.peers`: measures other programs beside the connector; writes a JSON file of results."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from tests.bench import workload
from tests.bench.peers import binlog, ceiling, latency, maxwell, ours, relay
from tests.bench.peers.debezium import EXACT, LEANER, MARKED, PLAIN, Debezium
from tests.bench.peers.jdbc_sink import JdbcSink
from tests.bench.peers.peer import Load, Peer, Unavailable
from tests.bench.result import Row, Sheet, out_option
from tests.bench.site import site

KINDS = ("bulk", "oltp")
# In this order: the sink reads what `debezium` has written.
PEERS: Mapping[str, Peer] = {
    "ours": ours.measure,
    "go": relay.measure,
    "maxwell": maxwell.measure,
    "mysqlbinlog": binlog.measure,
    "debezium": Debezium(PLAIN),
    "debezium-lean": Debezium(LEANER),
    "debezium-marked": Debezium(MARKED),
    "debezium-exact": Debezium(EXACT),
    "jdbc-sink": JdbcSink(reduce=False),
    "jdbc-sink-reduced": JdbcSink(reduce=True),
    "ceiling": ceiling.measure,
}
LATENCY = "latency"


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Row changes of each backlog.")
@click.option("--seconds", default=20.0, show_default=True, help="How long latency is measured.")
@click.option("--warm", default=15.0, show_default=True, help="Seconds before that, which are not counted.")
@click.option("--rate", default=200, show_default=True, help="Transactions a second while latency is measured.")
@click.option("--repeats", default=1, show_default=True)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), default=KINDS)
@click.option("--only", multiple=True, type=click.Choice([*PEERS, LATENCY]), help="Some of them; can be repeated.")
@out_option
def main(
    *,
    rows: int,
    seconds: float,
    warm: float,
    rate: int,
    repeats: int,
    kinds: Sequence[str],
    only: Sequence[str],
    out: Path,
) -> None:
    """Measure on this machine; exit 1 if a figure is void. A program that cannot run here is a row with the reason."""
    chosen = only or (*PEERS, LATENCY)
    sheet = Sheet(out, "peers", {"rows": rows, "seconds": seconds, "warm": warm, "rate": rate})
    for kind in kinds:
        peers = {name: peer for name, peer in PEERS.items() if name in chosen}
        if peers:
            for _ in range(repeats):
                _compare(sheet, kind, rows, peers)
    if LATENCY in chosen:
        for _ in range(repeats):
            latency.run(sheet, latency.Plan(rate, seconds, warm))
    sys.exit(0 if sheet.valid else 1)


def _compare(sheet: Sheet, kind: str, rows: int, peers: Mapping[str, Peer]) -> None:
    """Run all peers on the same servers and binary log, one after the other."""
    with site() as place:
        load = Load(place, kind, workload.fill(place.connect, kind, rows))
        for name, peer in peers.items():
            try:
                found = peer(load)
            except Unavailable as reason:
                found = [Row(f"{name}, {kind}", {}, f"skipped: {reason}")]
            except Exception as failure:  # noqa: BLE001 - it must not cost the others their figures
                found = [Row(f"{name}, {kind}", {}, f"failed: {failure!r}")]
            for row in found:
                sheet.add(row)


if __name__ == "__main__":
    main()
