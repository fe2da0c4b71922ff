"""`python -m tests.bench.scale`: prints the page, or puts it into docs/performance.md."""

from __future__ import annotations

from pathlib import Path

import click

from tests.bench.machine import ROOT
from tests.bench.markdown import replaced
from tests.bench.result import load
from tests.bench.scale import costs
from tests.bench.scale.pages import page


@click.command()
@click.option(
    "--results", type=click.Path(path_type=Path), help="A folder of results: fit the costs to it, and keep them."
)
@click.option("--costs", "file", type=click.Path(path_type=Path), default=costs.FILE, help="Costs, as JSON.")
@click.option("--row-bytes", default=200.0, show_default=True, help="Of a row in the binary log.")
@click.option("--terabytes", default=2.0, show_default=True, help="Of binary log a day.")
@click.option("--render", is_flag=True, help="Into docs/performance.md, between its markers.")
def main(results: Path | None, file: Path, row_bytes: float, terabytes: float, render: bool) -> None:
    """Compute the capacity model."""
    if results is not None:
        costs.write(costs.fitted(load(results), costs.read(file)), file)
    text = page(costs.read(file), row_bytes=row_bytes, terabytes=terabytes)
    if not render:
        click.echo(text)
        return
    document = ROOT / "docs" / "performance.md"
    document.write_text(replaced(document.read_text(), "scale", text))


if __name__ == "__main__":
    main()
