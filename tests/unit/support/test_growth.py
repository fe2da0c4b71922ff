"""The table at the end of `make soak`: what grows is flagged, what only fills its caches is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import psutil
import pytest

from tests.faults.growth import BUCKET, LIMITS, MIB, SPAN, Life, Lives, Sample, growing, measured, table

FLAT = 300 * MIB


def life(memory: Callable[[float], float], minutes: float = 70, descriptors: float = 40) -> Life:
    made = Life("thl produce", 1)
    for number in range(int(minutes * 6) + 1):
        values = {"memory": memory(number / 6), "descriptors": descriptors, "threads": 9}
        made.samples.append(Sample(number * 10.0, values))
    return made


@pytest.mark.parametrize(
    ("memory", "flagged"),
    [
        (lambda minute: FLAT + minute * MIB, True),  # ten MiB in ten minutes
        (lambda minute: FLAT + minute * 0.1 * MIB, False),
        (lambda minute: FLAT + (100 * MIB if minute > 8 else 0), False),  # filled in the first ten minutes
        (lambda minute: FLAT + (100 * MIB if minute > 41 else 0), False),  # one step
        (lambda minute: FLAT + (minute % 7) * 30 * MIB, False),  # up and down, as a heap
        (lambda minute: FLAT + (minute % 7) * 30 * MIB + minute * 2 * MIB, True),
        (lambda minute: 4000 * MIB + minute * 0.5 * MIB, False),  # 5 MiB of 4 GiB: within the share
    ],
)
def test_what_grows_by_the_minute_is_flagged(memory: Callable[[float], float], flagged: bool) -> None:
    found = life(memory)
    assert growing([found]) == (["thl produce 1 memory"] if flagged else [])
    (line,) = [line for line in table([found]) if " memory " in line]
    assert line.endswith(" !") == flagged


def test_growth_is_told_per_ten_minutes() -> None:
    assert life(lambda minute: FLAT + minute * MIB).growth("memory") == pytest.approx(10 * MIB)


@pytest.mark.parametrize("minutes", [0, 9, 24])
def test_a_short_life_tells_nothing(minutes: float) -> None:
    found = life(lambda minute: FLAT + minute * 100 * MIB, minutes)
    assert found.growth("memory") is None
    assert growing([found]) == []
    assert len(list(table([found]))) == 1 + len(LIMITS)


def test_a_process_that_is_started_again_has_another_life() -> None:
    lives = Lives()
    for at, pid in ((0.0, 7), (10.0, 7), (20.0, 8), (30.0, 8)):
        lives.add("thl apply", pid, Sample(at, {"memory": 1.0}))
        lives.add("Kafka", 9, Sample(at, {"memory": 1.0}))
    assert [(one.name, one.number, len(one.samples)) for one in lives.all] == [
        ("thl apply", 1, 2), ("Kafka", 1, 4), ("thl apply", 2, 2),
    ]  # fmt: skip


def test_files_of_a_folder_are_flagged() -> None:
    samples = [Sample(n * 60.0, {"files": 30.0 + n, "bytes": 1e6 + n * 10_000.0}) for n in range(80)]
    folder = Life("the run's folder", 1, samples)
    assert growing([folder]) == ["the run's folder 1 files"]
    assert [line.endswith(" !") for line in table([folder])][1:] == [True, False]


@pytest.mark.parametrize(
    ("minutes", "shown"), [(5, [5]), (31, [4.5, 14.5, 24.5]), (121, [4.5, 24.5, 44.5, 74.5, 94.5, 114.5])]
)
def test_the_table_has_medians_of_ten_minutes(minutes: int, shown: list[float]) -> None:
    samples = [Sample(n * 60.0, {"files": float(n), "bytes": 0.0}) for n in range(minutes + 1)]
    lines = list(table([Life("the run's folder", 1, samples)]))
    assert [float(value) for value in lines[1].removesuffix(" !").split()[-len(shown) :]] == shown


def test_a_real_process_that_opens_files_is_flagged() -> None:
    script = (
        "import sys\nkept = []\n"
        "for line in sys.stdin:\n    kept += [open('/dev/null') for _ in range(5)]\n    print('more', flush=True)\n"
    )
    lives = Lives()
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for bucket in range(7):
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "more\n"
            values = measured([psutil.Process(process.pid)])
            for at in (0.0, BUCKET - 1):
                lives.add("leaky", process.pid, Sample(bucket * BUCKET + at, values))
        process.stdin.close()
    assert "leaky 1 descriptors" in growing(lives.all)
    assert lives.all[0].growth("descriptors") == 5 * SPAN / BUCKET
