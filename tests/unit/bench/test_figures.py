"""The arithmetic of the benchmarks: rates, spreads, and which results may be combined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.course import Course, Look, TooShort
from tests.bench.driver import figures
from tests.bench.meter import Usage, usage
from tests.bench.result import Result, Row, comparable, load, read
from tests.bench.spread import Spread, shown

RESULT = Result("throughput", "2026-01-01 10:00", {"rows": 10}, {"processor": "two cores"})


def look(at: float, rows: int, cpu: float = 0.0) -> Look:
    return Look(at, rows, {"ours": Usage(cpu, 5_000_000)})


def test_spread_has_minimum_median_and_maximum() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(1.0, 2.0, 3.0)
    assert Spread.of([4.0]) == Spread(4.0, 4.0, 4.0)
    assert Spread.of([3.0, 1.0]).median == 2.0
    assert Spread.of([4.0, 6.0]) / Spread.of([2.0]) == 2.5


def test_spread_of_no_values_is_refused() -> None:
    with pytest.raises(ValueError):
        Spread.of([])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (0.01234, "0.0123"), (4.70, "4.7"), (12.345, "12.3"), (144.0, "144"), (1062.0, "1,062"),
        (1062.4, "1,062"), (9999.0, "9,999"), (123456.0, "123,000"), (890123.0, "890,000"), (-123456.0, "-123,000"),
        (12345678.0, "12,300,000"),
    ],
)  # fmt: skip
def test_three_digits_are_shown(value: float, text: str) -> None:
    assert shown(value) == text


def test_spread_of_one_value_is_shown_without_ends() -> None:
    assert str(Spread.of([5.0, 5.0])) == "5"
    assert str(Spread.of([100_400.0, 90_000.0, 200_000.0])) == "100,000 (90,000–200,000)"


def test_a_cold_start_is_not_in_the_steady_rate() -> None:
    # Half the speed for the first 600,000 rows.
    course = Course([look(0, 100_000, 1), look(10, 600_000, 11), look(12, 800_000, 12), look(20, 1_600_000, 16)])
    figures = course.figures()
    assert figures["rows/s"] == 100_000
    assert figures["whole run rows/s"] == 75_000
    assert figures["CPU s/M ours"] == 5.0
    assert figures["whole run CPU s/M ours"] == 10.0
    assert figures["peak MB ours"] == 5


def test_memory_of_a_run_is_the_most_of_its_processes_at_one_time() -> None:
    looks = [
        Look(
            at,
            at * 1_000_000,
            {"JVM": Usage(at, 0, 0, jvm), "workers": Usage(at, 0, 0, workers), "mysqld": Usage(at, 0, 0, 99)},
        )
        for at, jvm, workers in ((1, 7_000_000, 2_000_000), (2, 5_000_000, 5_000_000), (3, 1_000_000, 6_000_000))
    ]
    assert Course(looks, parts={"JVM", "workers"}).figures()["MB together"] == 10


def test_rows_before_what_is_measured_are_not_counted() -> None:
    course = Course([look(0, 1_000_000), look(5, 2_000_000), look(9, 2_400_000)], before=1_500_000)
    assert course.figures()["rows/s"] == 100_000
    assert course.figures()["rows"] == 900_000


def test_a_run_of_two_commits_is_measured_from_the_first_one() -> None:
    assert Course([look(0, 10), look(1, 10), look(2, 1000)]).figures()["rows/s"] == 495


def test_run_of_one_commit_has_no_rate() -> None:
    with pytest.raises(TooShort):
        Course([look(0, 1000), look(1, 1000)]).figures()


def test_rates_are_measured_where_the_count_changed() -> None:
    looks = [look(0, 300), look(1, 300), look(2, 500), look(3, 500), look(4, 1100)]
    assert Course(looks).rates() == [100.0, 300.0]


def test_process_family_includes_this_process() -> None:
    import os

    found = usage(os.getpid())
    assert found.cpu_seconds > 0
    assert found.peak >= found.resident > 1_000_000
    assert found.resident >= found.together > 1_000_000
    assert usage(os.getpid(), program="python*").cpu_seconds > 0
    assert usage(os.getpid(), program="no such program") == Usage(0.0, 0, 0)


def test_result_is_read_back_from_its_file(tmp_path: Path) -> None:
    import json
    from dataclasses import asdict

    result = replace(RESULT, rows=(Row("a", {"x": 1.5}, "", {"s": [1.0, 2.0]}), Row("b", {}, "broken")))
    (tmp_path / "1.json").write_text(json.dumps(asdict(result)))
    assert read((tmp_path / "1.json").read_text()) == result
    assert load(tmp_path) == [result]


def test_only_results_of_equal_settings_are_combined() -> None:
    older = replace(RESULT, at="2026-01-01 09:00", settings={"rows": 5})
    alike = replace(RESULT, at="2026-01-01 08:00")
    elsewhere = replace(RESULT, at="2026-01-01 07:00", machine={"processor": "four cores"})
    changed = replace(RESULT, at="2026-01-01 06:00", machine={**RESULT.machine, "code": "older"})
    another = replace(RESULT, part="latency", at="2026-01-01 11:00")
    assert comparable([RESULT, another, older, elsewhere, changed, alike], "throughput") == [alike, RESULT]
    assert comparable([another], "throughput") == []


def test_the_driver_s_cpu_is_told_apart_after_the_warm_up() -> None:
    lines = [
        {"rows": rows, "process": 5 + rows * 3e-6, "applying": 1 + rows * 2e-6, "writing": rows * 5e-7}
        for rows in (100_000, 600_000, 1_100_000, 2_600_000)
    ]
    found = figures([{"rows": 50_000, "process": 4.0, "applying": 0.5, "writing": 0.0}, *lines])
    assert {name: round(value, 6) for name, value in found.items()} == {
        "rows": 2_000_000,
        "rows a commit": 1_000_000,
        "CPU s/M driver": 3,
        "of it writing": 0.5,
        "besides writing": 2.5,
        "of that applying": 1.5,
        "reading and deciding": 1,
    }
