"""Failpoints do nothing unless configured; configured, they kill or stop the process at the given passage."""

from __future__ import annotations

import signal
import subprocess
import sys

PASS = "from connector import failpoints\nfor _ in range({}): failpoints.point('produce.before_commit')\n"


def passing(times: int, **environ: str) -> int:
    return subprocess.run([sys.executable, "-c", PASS.format(times)], env=environ, check=False).returncode


def test_without_failpoint_nothing_is_killed() -> None:
    assert passing(5) == 0


def test_third_pass_of_a_failpoint_kills() -> None:
    assert passing(2, THL_CRASH_POINT="produce.before_commit:3") == 0
    assert passing(3, THL_CRASH_POINT="produce.before_commit:3") == -signal.SIGKILL


def test_other_failpoint_is_passed() -> None:
    assert passing(3, THL_CRASH_POINT="produce.after_commit") == 0


def test_unknown_failpoint_is_refused() -> None:
    assert passing(0, THL_CRASH_POINT="produce.befor_commit") not in (0, -signal.SIGKILL)
