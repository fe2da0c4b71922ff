"""CPU seconds and peak resident memory of a process with all its children, as the kernel counts them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from connector.sandbox.process import children

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process family used so far.

    `peak` is the sum of every member's own VmHWM: an upper bound of the family's peak, never below it.
    """

    cpu_seconds: float
    peak: int  # bytes

    def figures(self) -> dict[str, float]:
        return {"cpu s": round(self.cpu_seconds, 2), "peak MB": round(self.peak / 1e6)}

    def __sub__(self, before: Usage) -> Usage:
        return Usage(self.cpu_seconds - before.cpu_seconds, self.peak)


def family(pid: int) -> list[int]:
    found = [pid]
    for member in found:
        found.extend(child.pid for child in children(member))
    return found


def usage(pid: int, *, name: str = "") -> Usage:
    """Of `pid` and its children; with `name`, only members whose program is called so."""
    cpu, peak = 0.0, 0
    for member in family(pid):
        try:
            stat = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{member}/status").read_text()
            program = Path(f"/proc/{member}/cmdline").read_text().partition("\0")[0]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended between the list and the look
        if not Path(program).name.startswith(name):
            continue
        cpu += (int(stat[11]) + int(stat[12])) / _TICK  # utime, stime: proc_pid_stat(5)
        peak += next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)
    return Usage(cpu, peak)
