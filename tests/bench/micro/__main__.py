"""`python -m tests.bench.micro`: see the package."""

from __future__ import annotations

import sys

import click

from tests.bench.micro import instructions, series, times
from tests.bench.micro.benchmarks import find
from tests.bench.micro.series import Figure


@click.command()
@click.argument("name", default="")
@click.option("--instructions", "counting", is_flag=True, help="Count instructions too, by valgrind: two minutes.")
@click.option("--save", is_flag=True, help="Keep the figures, instructions too, as a line of series.jsonl.")
@click.option("--compare", is_flag=True, help="Show ratios to its last line.")
def main(name: str, counting: bool, save: bool, compare: bool) -> None:
    """Measure the benchmarks whose names contain NAME; without NAME, all."""
    if save and name:
        raise click.UsageError("a line of the series has all benchmarks")
    benchmarks = find(name)
    counts: dict[str, float] = {}
    if counting or save:
        missing = instructions.available()
        if missing:
            click.echo(f"instructions are not counted: {missing}", err=True)
        else:
            counts = instructions.count(benchmarks)
    medians = times.measure(benchmarks, name)
    run = series.now(
        {e.name: Figure(e.unit, _short(medians.get(e.name)), _short(counts.get(e.name))) for e in benchmarks}
    )
    before = series.last() if compare else None
    if before:
        click.echo(f"now {run.commit} on {run.machine}; before {before.commit} of {before.date} on {before.machine}")
    click.echo(series.table(run, before))
    failed = [each.name for each in benchmarks if each.name not in medians]
    if failed:
        click.echo(f"failed: {', '.join(failed)}", err=True)
        sys.exit(1)
    if save:
        series.append(run)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


if __name__ == "__main__":
    main()
