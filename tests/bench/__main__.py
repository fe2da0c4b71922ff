"""`python -m tests.bench`: measures throughput and latency repeatedly; writes a JSON file each into one folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tests.bench import latency, throughput, workload
from tests.bench.result import Sheet, out_option


@click.command()
@click.option("--rows", default=1_500_000, show_default=True, help="Row changes of each backlog.")
@click.option("--seconds", default=20.0, show_default=True, help="How long latency is measured at each rate.")
@click.option("--warm", default=15.0, show_default=True, help="Seconds before that, which are not counted.")
@click.option("--rate", "rates", multiple=True, default=(200, 2000), show_default=True, help="Transactions a second.")
@click.option("--repeats", default=3, show_default=True)
@click.option("--only", type=click.Choice(["throughput", "latency"]))
@click.option("--kind", "kinds", multiple=True, type=click.Choice(workload.KINDS), default=workload.KINDS)
@click.option("--target", "targets", multiple=True, type=click.Choice(throughput.TARGETS), default=throughput.TARGETS)
@out_option
def main(
    *,
    rows: int,
    seconds: float,
    warm: float,
    rates: Sequence[int],
    repeats: int,
    only: str | None,
    kinds: Sequence[str],
    targets: Sequence[str],
    out: Path,
) -> None:
    """Measure on this machine; exit 1 if a figure is void."""
    sheets = []
    if only != "latency":
        sheets.append(Sheet(out, "throughput", {"rows": rows}))
        throughput.run(sheets[-1], throughput.Plan(rows, repeats, kinds, targets))
    if only != "throughput":
        sheets.append(Sheet(out, "latency", {"seconds": seconds, "warm": warm}))
        for _ in range(repeats):
            latency.run(sheets[-1], rates, seconds, warm)
    sys.exit(0 if all(sheet.valid for sheet in sheets) else 1)


if __name__ == "__main__":
    main()
