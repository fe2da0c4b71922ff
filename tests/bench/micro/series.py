"""The figures over time: one JSON line per run in `series.jsonl`, the newest last."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

SERIES = Path(__file__).with_name("series.jsonl")


@dataclass(frozen=True, slots=True)
class Figure:
    """The cost of a unit; None if it was not measured."""

    unit: str
    ns: float | None
    instructions: float | None


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the benchmarks."""

    date: str
    commit: str
    machine: str
    figures: dict[str, Figure]


def now(figures: dict[str, Figure]) -> Run:
    """A run of the checked-out code, just made; `+` after the commit means local changes."""
    git = ["git", "-C", str(SERIES.parent)]
    commit = subprocess.run(
        [*git, "describe", "--always", "--abbrev=10"], check=False, capture_output=True, text=True
    ).stdout
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--", ":/connector"], check=False, capture_output=True, text=True
    ).stdout
    return Run(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit.strip() + ("+" if changed else ""),
        machine=f"{_processor()}, Python {sys.version.split()[0]}",
        figures=figures,
    )


def append(run: Run, series: Path = SERIES) -> None:
    """Append a run."""
    with series.open("a") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def last(series: Path = SERIES) -> Run | None:
    """The newest run in the file."""
    lines = series.read_text().splitlines() if series.exists() else []
    if not lines:
        return None
    found = json.loads(lines[-1])
    return Run(**found | {"figures": {name: Figure(**figure) for name, figure in found["figures"].items()}})


def table(run: Run, before: Run | None) -> str:
    """A run as Markdown; with an earlier run, the ratio of each figure to it."""
    lines = ["| benchmark | unit | ns | instructions |" + (" ns, ratio | instructions, ratio |" if before else "")]
    lines.append("|---|---|---|---|" + ("---|---|" if before else ""))
    for name, figure in run.figures.items():
        line = f"| {name} | {figure.unit} | {_number(figure.ns)} | {_number(figure.instructions)} |"
        if before:
            old = before.figures.get(name, Figure(figure.unit, None, None))
            line += f" {_ratio(figure.ns, old.ns)} | {_ratio(figure.instructions, old.instructions)} |"
        lines.append(line)
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _ratio(value: float | None, old: float | None) -> str:
    return f"{value / old:.2f}" if value is not None and old else "–"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
