"""`python -m tests.bench`: every benchmark once, as JSON and as a Markdown table on standard output."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import click

from tests.bench import latency, throughput


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Row changes of each backlog.")
@click.option("--seconds", default=30.0, show_default=True, help="How long latency is measured at each rate.")
@click.option("--repeats", default=1, show_default=True)
@click.option("--only", type=click.Choice(["throughput", "latency"]))
@click.option("--out", type=click.Path(path_type=Path), default=Path("bench.json"), show_default=True)
def main(rows: int, seconds: float, repeats: int, only: str | None, out: Path) -> None:
    """Measure on this machine, side by side in one run."""
    runs = []
    for _ in range(repeats):
        figures: dict[str, dict[str, float]] = {}
        if only != "latency":
            figures |= throughput.run(rows)
        if only != "throughput":
            figures |= latency.run(200, seconds)
        runs.append(figures)
    machine = {"python": sys.version.split()[0], "machine": platform.platform(), "cores": _cores()}
    out.write_text(json.dumps({"machine": machine, "runs": runs}, indent=2))
    for figures in runs:
        for name, values in figures.items():
            print(f"| {name} | " + " | ".join(f"{key} {value:,.6g}" for key, value in values.items()) + " |")


def _cores() -> int:
    return sum(1 for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("processor"))


if __name__ == "__main__":
    main()
