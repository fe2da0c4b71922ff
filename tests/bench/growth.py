"""`python -m tests.bench.growth`: time per row and memory along growing dimensions of a load.

For each shape (rows, rows of a transaction, tables, columns, partitions) a log and a target of its own, after a
warm-up. Besides the time of all the rows the figures hold the quartiles of what was seen
from one commit to the next.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tests.bench.checksum import difference
from tests.bench.course import Course, TooShort, cpu, rate
from tests.bench.drain import APPLIED, APPLIER, PRODUCER, PUBLISHED, drain
from tests.bench.proof import log_proof
from tests.bench.result import Row, Sheet, out_option
from tests.bench.shape import FILTER, WARM_ROWS, Shape, axes, fill
from tests.bench.site import Site, site
from tests.bench.workload import Backlog

AXES = ("rows", "size", "tables", "columns", "partitions")


def measure(place: Site, shape: Shape, name: str, warm: int) -> Row:
    """Measure producer and applier at one point."""
    file = fill(place.connect, shape, warm)
    backlog = Backlog(warm + shape.rows, warm // 1000 + shape.transactions, warm)
    service = place.service(
        name,
        source={"start": f"{file}:4", "filters": {"do": FILTER}},
        kafka={"partitions": shape.partitions},
    )
    worker, gauges = service.worker("produce")
    servers, goal, before = place.servers(), backlog.rows, backlog.before
    made = drain(servers, worker, gauges, counter=PUBLISHED, goal=goal, parts=PRODUCER, before=before)
    worker, gauges = service.worker("apply")
    taken = drain(servers, worker, gauges, counter=APPLIED, goal=goal, parts=APPLIER, before=before)
    config = service.config
    why = log_proof(config, backlog)
    dsn = config.target.url.get_secret_value()
    why = why or difference(place.connect, dsn, shape.names, shape.column_names)
    figures = {"value": float(shape.value), "rows": float(shape.rows), "columns": float(shape.columns)}
    try:
        figures |= figures_of(made, "producer", ("producer",))
        figures |= figures_of(taken, "applier", tuple(APPLIER))
    except TooShort as error:
        why = why or str(error)
    return Row(shape.axis, figures, why)


def figures_of(course: Course, half: str, names: Sequence[str]) -> dict[str, float]:
    """Microseconds per row by clock and by CPU, and memory."""
    times = sorted(1e6 / speed for speed in course.rates())
    low, _, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    last = course.looks[-1]
    middle = 1e6 / rate(course.steady, last)
    return {
        f"{half} µs/row": middle,
        f"{half} µs/row low": low,
        f"{half} µs/row high": high,
        f"{half} CPU µs/row": sum(cpu(course.steady, last, name) for name in names),
        **{f"{name} peak MB": round(last.used[name].peak / 1e6) for name in names},
    }


@click.command()
@click.option("--rows", default=500_000, show_default=True, help="Rows of a point; some axes need more or fewer.")
@click.option("--warm", default=WARM_ROWS, show_default=True, help="Rows before them, which are not counted.")
@click.option("--ten-million", is_flag=True, help="Also 10 million rows (some three minutes).")
@click.option("--axis", "chosen", multiple=True, type=click.Choice(AXES), default=AXES)
@click.option("--repeats", default=1, show_default=True)
@out_option
def main(*, rows: int, warm: int, ten_million: bool, chosen: Sequence[str], repeats: int, out: Path) -> None:
    """Measure every point; exit 1 if one is void."""
    sheet = Sheet(out, "growth", {"rows": rows, "warm": warm})
    shapes = [shape for shape in axes(rows, ten_million=ten_million) if shape.axis in (*chosen, "base")]
    with site() as place:
        for repeat in range(repeats):
            for number, shape in enumerate(shapes):
                sheet.add(measure(place, shape, f"grow{repeat}-{number}", warm))
    sys.exit(0 if sheet.valid else 1)


if __name__ == "__main__":
    main()
