"""What `make soak` does over its hours, on a rig that only remembers; the run itself needs servers."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults import endurance, growth
from tests.faults.endurance import files_of, readings
from tests.support.clock import Slept


class Remembering:
    """A rig whose applier is gone after each kill of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: list[str] = []
        self.applier = SimpleNamespace(name="thl apply", pid=os.getpid(), running=True)
        self.producer = SimpleNamespace(name="thl produce", pid=None, running=False)
        self.kafka = SimpleNamespace(pid=os.getppid())
        self.mysql = SimpleNamespace(pid=2**22 + 1)  # no process has it
        self.postgres = None

    def progress(self) -> None:
        assert self.applier.running
        self.done.append("progress")

    def prove(self) -> None:
        self.done.append("prove")

    def resume(self) -> None:
        assert self.done[-1] == "prove"


def hours(made: Remembering, monkeypatch: pytest.MonkeyPatch, **options: float) -> int:
    """Run for long; returns the comparisons."""

    def kill(rig: Any, name: str) -> None:
        rig.done.append(f"kill {name}")
        rig.applier.running = name != "driver"

    def again(rig: Any, name: str) -> None:
        rig.done.append(f"start {name}")
        rig.applier.running = True

    monkeypatch.setattr(endurance, "CLOCK", Slept())
    monkeypatch.setattr(endurance, "at_random", kill)
    monkeypatch.setattr(endurance.killing, "again", again)
    for name in ("define", "load", "flood", "prepare"):
        monkeypatch.setattr(endurance, name, lambda rig, _, name=name: rig.done.append(name))
    given = Namespace(target="postgres", seed=1, **options)
    return sum(1 for _ in endurance._compared(made, given))  # type: ignore[arg-type]


def test_every_kind_of_step_and_kill_comes_and_comparisons_are_regular(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = Remembering(tmp_path)
    assert hours(made, monkeypatch, hours=24, kill_every=30, verify_every=10) in range(130, 145)
    counts = Counter(made.done)
    assert min(counts[name] for name in ("define", "load", "flood", "prepare")) > 500
    kills = {name: number for name, number in counts.items() if name.startswith("kill")}
    assert sum(kills.values()) in range(44, 49)
    assert set(kills) == {f"kill {name}" for name in ("producer", "broker", "MySQL", "driver", "JVM", "PostgreSQL")}
    assert counts["start apply"] == counts["kill driver"]


def test_nothing_is_killed_if_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = Remembering(tmp_path)
    hours(made, monkeypatch, hours=5, kill_every=0, verify_every=10)
    assert not [one for one in made.done if one.startswith("kill")]


def test_processes_that_run_and_files_beside_the_servers_are_read(tmp_path: Path) -> None:
    for name in ("produce-0.log", "spark/a/b", "mysql/ibdata1", "kafka/log/1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert files_of(tmp_path) == 2
    made = Remembering(tmp_path)
    # a process of its own: the one of the tests may have a JVM among its children
    script = "import time; print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as applier:
        assert applier.stdout
        applier.stdout.readline()
        made.applier.pid = applier.pid
        found = {name: values for name, _, values in readings(made)}  # type: ignore[arg-type]
        applier.kill()
    assert set(found) == {"thl apply", "Kafka", "the run's folder"}
    assert found["thl apply"]["memory"] > growth.MIB
    assert found["the run's folder"] == {"files": 2.0}
