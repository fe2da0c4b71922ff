"""The plots of docs/img, made from results."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from tests.bench.markdown import cases
from tests.bench.result import Result, Row, comparable
from tests.bench.tables import OURS

mpl.use("Agg")
mpl.rcParams.update(
    {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e6e6e6",
        "axes.axisbelow": True,
        "legend.frameon": False,
        "svg.hashsalt": "thl",
    }
)

COLOURS = {"producer": "#1f6f8b", "applier": "#c8553d", "driver": "#e0a458", "JVM": "#8e3b46", "workers": "#6a994e"}
BASE = {"rows": None, "size": 1000.0, "tables": 1.0, "columns": 10.0, "partitions": 1.0}
TITLES = {
    "rows": "rows in all",
    "size": "rows of a transaction",
    "tables": "tables",
    "columns": "columns\n(time per 10 values)",
    "partitions": "partitions",
}
DPI = 130


def growth(results: Sequence[Result], path: Path) -> None:
    """A column of panels for each axis: time per row above, memory below."""
    points = {axis: _points(results, axis) for axis in BASE}
    figure, panels = plt.subplots(2, len(points), figsize=(13, 5.6), sharey="row", layout="constrained")
    for number, (axis, found) in enumerate(points.items()):
        _times(panels[0][number], axis, found)
        _memory(panels[1][number], found)
        panels[1][number].set_xlabel(TITLES[axis])
    panels[0][0].set_ylabel("µs per row")
    panels[1][0].set_ylabel("MB, peak resident")
    panels[1][0].set_ylim(bottom=0)
    for row in panels:
        entries = dict(zip(*reversed(row[0].get_legend_handles_labels()), strict=True))
        row[-1].legend(
            [entries[name] for name in sorted(entries)], sorted(entries), loc="upper left", bbox_to_anchor=(1.0, 1.0)
        )
    figure.suptitle("Time per row (bars: quartiles, from commit to commit) and memory, one thing varied at a time")
    figure.savefig(path, dpi=DPI)
    plt.close(figure)


Points = dict[float, list[Row]]


def _points(results: Sequence[Result], axis: str) -> Points:
    """Value → repeats, in order, including the point that all axes share."""
    found: Points = {}
    for case, rows in cases(results).items():
        for row in rows:
            if case == axis:
                found.setdefault(row.figures["value"], []).append(row)
            elif case == "base":
                found.setdefault(BASE[axis] or row.figures["rows"], []).append(row)
    return dict(sorted(found.items()))


def _times(panel: Any, axis: str, points: Points) -> None:
    for half in ("producer", "applier"):
        scaled: dict[str, list[float]] = {
            figure: [_per_row(rows, f"{half} {figure}", axis) for rows in points.values()]
            for figure in ("µs/row", "µs/row low", "µs/row high", "CPU µs/row")
        }
        middle = scaled["µs/row"]
        spread = [
            [max(here - low, 0.0) for here, low in zip(middle, scaled["µs/row low"], strict=True)],
            [max(high - here, 0.0) for here, high in zip(middle, scaled["µs/row high"], strict=True)],
        ]
        panel.errorbar(
            list(points), middle, yerr=spread, color=COLOURS[half], marker="o", markersize=4, capsize=2, label=half
        )
        cpu = scaled["CPU µs/row"]
        panel.plot(list(points), cpu, color=COLOURS[half], linestyle=":", marker=".", label=f"{half}, CPU")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_locator(NullLocator())
    _label(panel)


def _per_row(rows: Sequence[Row], figure: str, axis: str) -> float:
    scale = 10 / rows[0].figures["columns"] if axis == "columns" else 1.0
    return statistics.median(row.figures[figure] for row in rows) * scale


def _memory(panel: Any, points: Points) -> None:
    for name in OURS:
        peaks = [statistics.median(row.figures[f"{name} peak MB"] for row in rows) for rows in points.values()]
        panel.plot(list(points), peaks, color=COLOURS[name], marker="o", markersize=4, label=name)
    panel.set_xscale("log")
    _label(panel)


def _label(panel: Any) -> None:
    """A size in readable form."""
    panel.xaxis.set_major_formatter(FuncFormatter(_short))
    panel.xaxis.set_minor_locator(NullLocator())


def _short(value: float, _: object = None) -> str:
    for unit, letter in ((1_000_000, "M"), (1000, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def catch_up(results: Sequence[Result], path: Path) -> None:
    """The newest run: lag, estimate and memory."""
    row = next(row for result in reversed(results) for row in reversed(result.rows) if row.series)
    at, done = row.series["s"], row.figures["s to caught up"]
    figure, (behind, left, memory) = plt.subplots(3, 1, figsize=(9, 6.5), sharex=True, layout="constrained")
    behind.plot(at, [rows / 1e6 for rows in row.series["rows behind"]], color=COLOURS["applier"])
    behind.set_ylabel("million rows behind")
    told = [(x, y) for x, y in zip(at, row.series["estimate s"], strict=True) if y >= 0]
    left.plot([0, done], [done, 0], color="#999999", linestyle="--", label="as it was")
    left.plot([x for x, _ in told], [y for _, y in told], color=COLOURS["producer"], label="thl_catch_up_seconds")
    left.set_ylabel("seconds left")
    left.set_ylim(0, 1.5 * done)
    for name in OURS:
        memory.plot(at, row.series[f"MB {name}"], color=COLOURS[name], label=name)
    memory.set_ylabel("MB resident")
    memory.set_xlabel("seconds after the start of thl apply")
    for panel in (behind, left, memory):
        panel.axvline(done, color="#999999", linewidth=0.8)
        panel.set_ylim(bottom=0)
        panel.yaxis.set_major_locator(MaxNLocator(5))
    for panel in (left, memory):
        panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.suptitle(f"A target {row.figures['rows behind']:,.0f} row changes behind ({row.case})")
    figure.savefig(path, dpi=DPI)
    plt.close(figure)


PLOTS: Mapping[str, Callable[[Sequence[Result], Path], None]] = {"growth": growth, "catch-up": catch_up}


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """Draw the measured parts; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for part, plot in PLOTS.items():
        found = [result for result in comparable(results, part) if any(not row.void for row in result.rows)]
        if found:
            drawn.append(folder / f"{part}.png")
            plot(found, drawn[-1])
    return drawn
