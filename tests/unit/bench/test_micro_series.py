"""The series of the micro-benchmarks: runs are stored, read back and compared."""

from __future__ import annotations

from pathlib import Path

from tests.bench.micro import series
from tests.bench.micro.series import Figure, Run


def a_run(commit: str, ns: float | None, instructions: float | None) -> Run:
    return Run("2026-01-01T00:00:00+00:00", commit, "a machine", {"encode.events": Figure("event", ns, instructions)})


def test_the_newest_line_is_the_last_run(tmp_path: Path) -> None:
    file = tmp_path / "series.jsonl"
    assert series.last(file) is None

    series.append(a_run("one", 10.0, None), file)
    series.append(a_run("two", 20.0, 300.0), file)

    assert series.last(file) == a_run("two", 20.0, 300.0)


def test_a_run_is_shown_with_its_ratios_to_an_earlier_one() -> None:
    shown = series.table(a_run("now", 1500.0, 90.0), a_run("then", 1000.0, 180.0))

    assert shown.splitlines()[-1] == "| encode.events | event | 1,500 | 90.0 | 1.50 | 0.50 |"


def test_missing_measurement_has_no_ratio() -> None:
    shown = series.table(a_run("now", 1500.0, None), a_run("then", None, 180.0))

    assert shown.splitlines()[-1] == "| encode.events | event | 1,500 | – | – | – |"
