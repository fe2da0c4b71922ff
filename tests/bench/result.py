"""Results as JSON files in one folder: each run of a part adds one, and none is changed later."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from tests.bench.machine import describe

FOLDER = Path("bench-results")

out_option: Callable[..., Any] = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    help="The folder to which a JSON file is added.",
)

Settings = dict[str, float | str]


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement.

    Args:
        case: name of the measurement, equal in every repeat.
        figures: name → value.
        void: why the figures do not count; empty when they do.
        series: name → points over time, for a plot.
    """

    case: str
    figures: dict[str, float]
    void: str = ""
    series: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """The content of a file.

    Args:
        part: which benchmark.
        at: when it began, UTC.
        settings: that make figures comparable: sizes, rates.
        machine: see `tests.bench.machine`.
        rows: repeats one after another.
    """

    part: str
    at: str
    settings: Settings
    machine: dict[str, str]
    rows: tuple[Row, ...] = ()


class Sheet:
    """A run's growing result: after each row the file has all measurements so far.

    Args:
        out: the folder.
        part, settings: see `Result`.
    """

    def __init__(self, out: Path, part: str, settings: Settings) -> None:
        out.mkdir(parents=True, exist_ok=True)
        now = time.gmtime()
        self._file = out / f"{time.strftime('%Y%m%dT%H%M%SZ', now)}-{part}-{os.getpid()}.json"
        self._result = Result(part, time.strftime("%Y-%m-%d %H:%M", now), settings, describe())

    def add(self, row: Row) -> None:
        """Add a row, and print it."""
        result = self._result
        self._result = Result(result.part, result.at, result.settings, result.machine, (*result.rows, row))
        whole = self._file.with_suffix(".part")
        whole.write_text(json.dumps(asdict(self._result), indent=1))
        whole.replace(self._file)
        figures = ", ".join(f"{name} {value:,.5g}" for name, value in row.figures.items())
        print(f"{row.case}: {f'VOID ({row.void}) ' if row.void else ''}{figures}", flush=True)

    @property
    def valid(self) -> bool:
        """True if no row is void."""
        return not any(row.void for row in self._result.rows)


def load(folder: Path) -> list[Result]:
    """All results of a folder, oldest first."""
    return [read(file.read_text()) for file in sorted(folder.glob("*.json"))]


def read(text: str) -> Result:
    """The content of a file."""
    found = json.loads(text)
    return Result(**{**found, "rows": tuple(Row(**row) for row in found["rows"])})


def comparable(results: Iterable[Result], part: str) -> list[Result]:
    """Results of a part with the newest one's settings, processor and code, oldest first."""
    of_part = sorted((result for result in results if result.part == part), key=lambda result: result.at)
    return [result for result in of_part if _alike(result, of_part[-1])]


def _alike(one: Result, other: Result) -> bool:
    same = (one.machine.get(name) == other.machine.get(name) for name in ("processor", "code"))
    return one.settings == other.settings and all(same)
