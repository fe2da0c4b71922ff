"""CPU seconds and resident memory of a process with all its children, from the kernel."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_REFRESH = 1.0  # seconds for which a family's list of members is believed
_SHARES = 2.0  # seconds between two looks at how members share memory: the kernel walks all their pages


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources that a process family has used.

    `resident` and `peak` are sums over the members, `peak` of every member's own VmHWM: an upper bound of the family's
    peak, never below it. `together` counts what several processes share once (the sum of the Pss of smaps_rollup).
    """

    cpu_seconds: float
    peak: int  # bytes
    resident: int = 0  # bytes, now
    together: int = 0  # bytes, some seconds ago at most

    def figures(self) -> dict[str, float]:
        return {"cpu s": round(self.cpu_seconds, 2), "peak MB": round(self.peak / 1e6)}

    def __sub__(self, before: Usage) -> Usage:
        return Usage(self.cpu_seconds - before.cpu_seconds, self.peak, self.resident, self.together)


class Meter:
    """Measures a family repeatedly at little cost: its members are looked up once a second only.

    Args:
        pid: root process of the family; None: none, and no usage.
        program: only members of whom this is the program with its arguments; a pattern as of files.
    """

    def __init__(self, pid: int | None, program: str = "*") -> None:
        self._pid = pid
        self._program = program
        self._members: list[int] = []
        self._listed = self._shared = float("-inf")
        self._together = 0

    def read(self) -> Usage:
        """The usage up to now."""
        if self._pid is None:
            return Usage(0.0, 0)
        now = time.monotonic()
        if now - self._listed > _REFRESH:
            self._listed, self._members = now, [pid for pid in family(self._pid) if _is(pid, self._program)]
        if now - self._shared > _SHARES:
            self._shared, self._together = now, sum(map(_proportional, self._members))
        return replace(_sum(self._members), together=self._together)


def family(pid: int) -> list[int]:
    """A process, its children, and theirs."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children[int(fields[1])].append(int(entry.name))
    found = [pid]
    for member in found:
        found.extend(children[member])
    return found


def usage(pid: int, *, program: str = "*") -> Usage:
    """The usage of `pid` and its children; see `Meter`."""
    return Meter(pid, program).read()


def _sum(members: list[int]) -> Usage:
    cpu, peak, resident = 0.0, 0, 0
    for member in members:
        fields = _stat(member)
        if fields is None:
            continue  # it ended: its parent has its times
        cpu += sum(map(int, fields[11:15])) / _TICK  # utime, stime, and those of children waited for: proc_pid_stat(5)
        memory = _memory(member)
        peak += memory.get("VmHWM", 0)
        resident += memory.get("VmRSS", 0)
    return Usage(cpu, peak, resident)


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _memory(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    pairs = (line.partition(":")[::2] for line in lines if line.startswith("Vm"))
    return {name: int(value.split()[0]) * 1024 for name, value in pairs}


def _proportional(pid: int) -> int:
    """The bytes of a process, those that it shares with others divided by their number."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _is(pid: int, program: str) -> bool:
    try:
        path, *arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fnmatchcase(" ".join([Path(path).name, *arguments]), program)
