"""Repeats of a figure: their median, minimum and maximum."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

LARGE = 10_000  # from here on a figure is shown in thousands, with three digits


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of several measurements."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one value.

        Raises:
            ValueError: of none.
        """
        found = sorted(values)
        if not found:
            raise ValueError("a spread of no values")
        return cls(found[0], statistics.median(found), found[-1])

    def __truediv__(self, reference: Spread) -> float:
        """The ratio of this median to the reference's."""
        return self.median / reference.median

    def __str__(self) -> str:
        if self.low == self.high:
            return shown(self.median)
        return f"{shown(self.median)} ({shown(self.low)}–{shown(self.high)})"


def shown(value: float) -> str:
    """Three significant digits, the precision of such a benchmark; whole numbers below 10,000 stay whole."""
    if abs(value) >= LARGE:
        digits = 3 - len(str(int(abs(value))))
        return f"{round(value, digits):,.0f}"
    if value == int(value):
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
