"""Old checkpoints are never read; those of this user's ended processes are removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from connector.spark import checkpoint


def gone() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_each_start_gets_a_new_empty_folder(tmp_path: Path) -> None:
    parent = tmp_path / "made" / "when needed"
    first, second = checkpoint.fresh(parent), checkpoint.fresh(parent)
    assert first != second
    assert list(first.iterdir()) == list(second.iterdir()) == []


def test_folders_of_ended_processes_of_this_user_are_removed(tmp_path: Path) -> None:
    dead = tmp_path / f"thl-apply-{gone()}-abc"
    alive = tmp_path / f"thl-apply-{os.getpid()}-abc"
    foreign = tmp_path / "offsets"
    for folder in (dead, alive, foreign):
        (folder / "inner").mkdir(parents=True)
    checkpoint.fresh(tmp_path)
    assert not dead.exists()
    assert alive.exists()
    assert foreign.exists()
