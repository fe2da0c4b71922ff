"""The lags of the last hours as inline SVG: no script, no style attributes, so that a strict CSP holds.

Only numbers enter the SVG.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup

from connector.serve.history import WIDTH, Point

COLUMNS: Final = 240
PLOT_WIDTH, PLOT_HEIGHT, LEFT, BOTTOM, TOP = 720, 120, 56, 22, 8
STEPS: Final = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400)


@dataclass(frozen=True, slots=True)
class LagChart:
    """The lag of producer or applier over some hours.

    Args:
        svg: the picture; it is an image without text for those who cannot see it, `summary` says what it shows.
        summary: the picture in words.
        known: False where there is no point.
    """

    svg: Markup
    summary: str
    known: bool


def lag_chart(points: Sequence[Point], key: str, since: float, until: float) -> LagChart:
    """Draw a lag.

    Args:
        points: of the history.
        key: of the producer or of a target.
        since, until: the times of the left and the right edge, in seconds since 1970 UTC.
    """
    columns = _columns(points, key, since, until)
    known = [value for value in columns if value is not None]
    top = _ceiling(max(known, default=0.0))
    width = LEFT + PLOT_WIDTH + 8
    height = TOP + PLOT_HEIGHT + BOTTOM
    parts = [f'<svg class="chart" viewBox="0 0 {width} {height}" aria-hidden="true" focusable="false">']
    for share in (0.0, 0.5, 1.0):
        y = TOP + PLOT_HEIGHT * (1 - share)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + PLOT_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="axis" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(top * share)}</text>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = LEFT + PLOT_WIDTH * share
        at = datetime.fromtimestamp(since + (until - since) * share, UTC)
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        parts.append(f'<text class="axis" x="{x:.1f}" y="{height - 6}" text-anchor="{anchor}">{at:%H:%M}</text>')
    for line in _lines(columns, top):
        first, last = line[0][0], line[-1][0]
        base = TOP + PLOT_HEIGHT
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        parts.append(f'<polygon class="area" points="{first:.1f},{base} {text} {last:.1f},{base}"/>')
        parts.append(f'<polyline class="line" points="{text}"/>')
    parts.append("</svg>")
    # Only numbers were formatted into it.
    return LagChart(Markup("".join(parts)), _summary(columns, until - since), bool(known))  # noqa: S704


def short(seconds: float) -> str:
    """Return a duration in two or three characters and a unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _columns(points: Sequence[Point], key: str, since: float, until: float) -> list[float | None]:
    """Return the largest lag of each column; of columns narrower than a point, the point's."""
    count = max(min(COLUMNS, int((until - since) / WIDTH)), 2)
    columns: list[float | None] = [None] * count
    for point in points:
        value = point.lag.get(key)
        if value is None or not math.isfinite(value):
            continue
        column = min(max(int((point.at + WIDTH / 2 - since) / (until - since) * count), 0), count - 1)
        columns[column] = max(value, columns[column] or 0.0)
    return columns


def _lines(columns: Sequence[float | None], top: float) -> Iterator[list[tuple[float, float]]]:
    """Yield the parts of the curve between columns where the lag was unknown."""
    line: list[tuple[float, float]] = []
    for index, value in enumerate([*columns, None]):
        if value is not None:
            x = LEFT + PLOT_WIDTH * (index + 0.5) / len(columns)
            line.append((x, TOP + PLOT_HEIGHT * (1 - value / top)))
        elif line:
            if len(line) == 1:  # a point alone would have no length
                (x, y) = line[0]
                line = [(x - 1.5, y), (x + 1.5, y)]
            yield line
            line = []


def _ceiling(value: float) -> float:
    return next((step for step in STEPS if step >= value), math.ceil(value / 86400) * 86400)


def _summary(columns: Sequence[float | None], seconds: float) -> str:
    known = [value for value in columns if value is not None]
    if not known:
        return f"no lag is known of the last {short(seconds)}"
    # The last minute may have no reading yet.
    end = next((short(value) for value in columns[:-3:-1] if value is not None), "unknown")
    return f"last {short(seconds)}: at most {short(max(known))}, at the end {end}"
