"""Instructions per unit, counted by callgrind: the same on a busy machine as on an idle one.

One interpreter runs under valgrind, which counts nothing until it is asked to. For each benchmark it forks: the child
is as fresh as if it were the only one, prepares, warms up, and then counts `LOOPS` calls. What the same loop costs
around a call of nothing is subtracted.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.bench.micro import inputs
from tests.bench.micro.benchmarks import find
from tests.bench.micro.registry import Micro, Work

LOOPS = 5
WARM = 3
# Valgrind's requests, for Python to call: count from here, end one count.
PROBE = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""
_TOTALS = re.compile(r"^totals: (\d+)$", re.MULTILINE)


def available() -> str:
    """The reason why instructions cannot be counted here; empty if they can."""
    missing = [program for program in ("valgrind", "cc") if shutil.which(program) is None]
    return f"{' and '.join(missing)} not found" if missing else ""


def count(benchmarks: Iterable[Micro]) -> dict[str, float]:
    """Instructions per unit of each benchmark that can be counted; a failing one is reported and omitted."""
    counted = [each for each in benchmarks if each.counted]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compiler = ["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-o", folder / "probe.so", "-"]
        subprocess.run(compiler, input=PROBE, text=True, check=True)
        command = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out.%p"]
        command += [sys.executable, "-m", __name__, str(folder), *(each.name for each in counted)]
        # with a fixed seed, for otherwise sets and dicts of strings are laid out differently each time
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": "0"}, check=True)
        return {
            each.name: _total(folder, each.name) / LOOPS / each.units
            for each in counted
            if (folder / each.name).exists()
        }


def _total(folder: Path, name: str) -> int:
    """Instructions of a benchmark's loop, minus those of the empty loop in the same process."""
    pid = (folder / name).read_text()
    empty, whole = (int(_TOTALS.findall((folder / f"out.{pid}.{part}").read_text())[0]) for part in (1, 2))
    return whole - empty


def _measure(probe: ctypes.CDLL, work: Work, label: str) -> None:
    loops = range(LOOPS)
    probe.begin()
    for _ in loops:
        work()
    probe.end(label.encode())


def _nothing() -> None:
    pass


def _child(folder: Path, each: Micro) -> None:
    probe = ctypes.CDLL(str(folder / "probe.so"))
    work = each.prepare()
    for _ in range(WARM):
        work()
    gc.collect()
    gc.disable()
    _measure(probe, _nothing, "empty")
    _measure(probe, work, each.name)
    (folder / each.name).write_text(str(os.getpid()))


def main(folder: Path, names: list[str]) -> None:
    """Fork for each benchmark, one after the other."""
    inputs.batch(inputs.small_log())  # made once for all
    inputs.batch(inputs.large_log())
    wanted = {each.name: each for each in find()}
    for name in names:
        child = os.fork()
        if not child:
            try:
                _child(folder, wanted[name])
            except BaseException as error:  # noqa: BLE001 (told, and the others go on)
                print(f"{name}: {error!r}", file=sys.stderr, flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
