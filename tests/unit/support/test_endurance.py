"""What `make soak` does over its hours, on a rig that only remembers; the run itself needs servers."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults import endurance, growth
from tests.faults.endurance import OURS, THEIRS, Stage
from tests.faults.readings import Watched, readings, usage
from tests.support.clock import Slept


class Remembering:
    """A rig that does nothing.

    Args:
        clock: its time is noted with each thing that is done.
    """

    def __init__(self, clock: Slept) -> None:
        self.clock = clock
        self.done: list[tuple[float, str]] = []

    def note(self, what: str) -> None:
        self.done.append((self.clock.seconds, what))

    def progress(self) -> None:
        self.note("progress")

    def prove(self) -> None:
        self.note("prove")

    def resume(self) -> None:
        assert self.done[-1][1] == "prove"


def hours(monkeypatch: pytest.MonkeyPatch, **options: float) -> tuple[list[tuple[float, str]], int]:
    """Run for long; return what was done, with its second, and the number of comparisons."""
    clock = Slept()
    rig = Remembering(clock)
    monkeypatch.setattr(endurance, "CLOCK", clock)
    monkeypatch.setattr(endurance, "at_random", lambda rig, name: rig.note(name))
    monkeypatch.setattr(endurance, "cut", lambda rig, network, name, random: rig.note(f"cut {name}"))
    monkeypatch.setattr(endurance, "fail_over", lambda rig, network, replica: rig.note("failover") or replica + 1)
    for name in ("define", "load", "flood", "prepare"):
        monkeypatch.setattr(endurance, name, lambda rig, _, name=name: rig.note(name))
    nothing: Any = None
    made = Stage(rig, nothing, replica=0, page=nothing)  # type: ignore[arg-type]
    comparisons = sum(1 for _ in endurance._compared(made, Namespace(seed=1, **options)))
    assert made.replica == [what for _, what in rig.done].count("failover")
    return rig.done, comparisons


def test_every_kind_of_step_and_trouble_comes_and_comparisons_are_regular(monkeypatch: pytest.MonkeyPatch) -> None:
    done, comparisons = hours(monkeypatch, hours=24, trouble_every=2, verify_every=10)
    assert comparisons in range(130, 145)
    counts = Counter(what for _, what in done)
    assert min(counts[name] for name in ("define", "load", "flood", "prepare")) > 500
    assert min(counts[name] for name in OURS) > 40
    assert min(counts[name] for name in THEIRS) > 60


def test_our_processes_live_for_most_of_each_hour_and_of_a_shorter_run(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = hours(monkeypatch, hours=24, trouble_every=2, verify_every=10)
    assert (
        max(at % 3600 for at, what in done if what in OURS)
        < 720
        <= min(at % 3600 for at, what in done if what in THEIRS)
    )
    done, _ = hours(monkeypatch, hours=2 / 3, trouble_every=2, verify_every=10)
    assert max(at for at, what in done if what in OURS) < 480
    assert {what for _, what in done} >= {*OURS, *THEIRS}


def test_nothing_is_killed_or_cut_if_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = hours(monkeypatch, hours=5, trouble_every=0, verify_every=10)
    assert not {what for _, what in done} & {*OURS, *THEIRS}


def test_processes_that_run_and_files_beside_the_servers_are_read(tmp_path: Path) -> None:
    for name in ("produce-0.log", "spark/a/b", "mysql/ibdata1", "kafka/log/1", "replica/ibdata1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("12345")
    assert usage(tmp_path) == {"files": 2.0, "bytes": 10.0}
    # a process of its own: the one of the tests may have a JVM among its children
    script = "import time; print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        applier: Any = SimpleNamespace(name="thl apply", pid=process.pid, running=True)
        gone: Any = SimpleNamespace(name="thl produce", pid=2**22 + 1, running=False)  # no process has it
        not_started: Any = SimpleNamespace(name="thl serve", pid=None, running=False)
        found = {name: values for name, _, values in readings(Watched(tmp_path, (applier, gone, not_started), applier))}
        process.kill()
    assert set(found) == {"thl apply", "the run's folder"}
    assert found["thl apply"]["memory"] > growth.MIB


def test_the_workers_of_a_jvm_are_read_as_one(tmp_path: Path) -> None:
    worker = "import sys; print(flush=True); sys.stdin.read()"
    java = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"
    driver = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {java!r}, 'SparkSubmit'])"
    with subprocess.Popen([sys.executable, "-c", driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        applier: Any = SimpleNamespace(name="thl apply", pid=process.pid, running=True)
        found = {name: values for name, _, values in readings(Watched(tmp_path, (applier,), applier))}
    assert found["Spark's workers"]["threads"] == 1
    assert set(found) == {"thl apply", "Spark's JVM", "Spark's workers", "the run's folder"}
