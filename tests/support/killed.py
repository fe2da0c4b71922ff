"""Runs a program that kills itself at a failpoint, in a process of its own.

That is a fork of a process that has imported the programs: their imports were most of each run.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path

from connector import failpoints

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "pandas",  # which pyarrow imports when it is used
        "tests.support.killed",
        "tests.support.duckdb_applier",
        "tests.support.history_applier",
        "tests.support.mysql_applier",
    ]
)


def run(program: Callable[..., None], *arguments: str, crash: str = "") -> int:
    """Run a program; return its exit code.

    Args:
        program: a function of a module, with strings as arguments.
        arguments: its arguments.
        crash: the failpoint at which it is killed, as in `THL_CRASH_POINT`.

    Raises:
        AssertionError: it failed; the message has its error.
    """
    with tempfile.NamedTemporaryFile() as told:
        process = _CONTEXT.Process(target=_run, args=(program, arguments, crash, told.name))
        process.start()
        process.join()
        if process.exitcode:
            assert process.exitcode < 0, Path(told.name).read_text()[-2000:]
        return process.exitcode or 0


def _run(program: Callable[..., None], arguments: tuple[str, ...], crash: str, told: str) -> None:
    failpoints.point = failpoints._armed({"THL_CRASH_POINT": crash})  # type: ignore[misc]
    with Path(told).open("w") as log, redirect_stderr(log):
        try:
            program(*arguments)
        except Exception:
            traceback.print_exc()
            raise
