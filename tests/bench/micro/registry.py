"""The registration of a benchmark: a function that prepares and returns the measured function.

@micro("row", 1000)
def rows_to_copy() -> Work:
    images = …                        # not measured
    return lambda: copy_rows(images)  # measured: 1000 rows a call
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]
"""One measured call. It may be repeated without end and does the same every time."""


@dataclass(frozen=True, slots=True)
class Micro:
    """One benchmark.

    Args:
        name: `stage.function`.
        unit: unit of the figure: `row`, `event` …
        units: units per call of the work.
        prepare: makes the input and returns the work.
        counted: whether its instructions can be counted: not where threads of a library do a part.
    """

    name: str
    unit: str
    units: int
    prepare: Callable[[], Work]
    counted: bool


BENCHMARKS: dict[str, Micro] = {}


def micro(unit: str, units: int = 1, *, counted: bool = True) -> Callable[[Callable[[], Work]], Callable[[], Work]]:
    """Register the function below as a benchmark, named after its module and itself."""

    def register(prepare: Callable[[], Work]) -> Callable[[], Work]:
        name = f"{prepare.__module__.rpartition('.')[2]}.{prepare.__name__}"
        BENCHMARKS[name] = Micro(name, unit, units, prepare, counted)
        return prepare

    return register


def named(family: str, prepare: Callable[[], Work], unit: str, units: int) -> None:
    """Register one of several benchmarks that differ in their input only."""
    BENCHMARKS[family] = Micro(family, unit, units, prepare, counted=True)
