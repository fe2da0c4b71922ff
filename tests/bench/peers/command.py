"""A program that runs once from its start to its end: how long it took, and what it used."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence

from tests.bench.meter import Meter
from tests.bench.peers.peer import Unavailable

_LOOK = 0.01  # seconds


def spent(name: str, command: Sequence[str], rows: int) -> dict[str, float]:
    """Run a program whose output is thrown away.

    Args:
        name: the program, in the figures' names.
        command: the program and its arguments.
        rows: the rows that it processes.

    Returns:
        Rows a second, CPU seconds per million rows, peak memory.

    Raises:
        Unavailable: it is not installed, or failed.
    """
    began = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        except FileNotFoundError as error:
            raise Unavailable(f"{name} is not installed") from error
        meter, peak = Meter(child.pid), 0
        while not (ended := os.wait4(child.pid, os.WNOHANG))[0]:
            peak = max(peak, meter.read().peak)  # what wait4 tells has our own size before exec in it
            time.sleep(_LOOK)
        seconds = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(ended[1])
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    if child.returncode:
        raise Unavailable(f"{name}: {said.strip()[-300:]}")
    return {
        "rows": rows,
        "rows/s": round(rows / seconds),
        f"CPU s/M {name}": round((ended[2].ru_utime + ended[2].ru_stime) / rows * 1e6, 2),
        f"peak MB {name}": round(peak / 1e6),
    }
