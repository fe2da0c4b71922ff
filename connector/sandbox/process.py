"""Identifies a process by its PID and its start time, because PIDs are reused."""

from __future__ import annotations

import os
import signal as signals
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from connector.errors import SandboxError

# Fields of /proc/PID/stat after the parenthesised command, per proc_pid_stat(5): state, ppid, …, starttime.
_STATE, _PARENT, _STARTED = 0, 1, 19


@dataclass(frozen=True, slots=True)
class Process:
    """A process ID, and the start time of the process in clock ticks after boot."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process:
        """Return the process that has `pid` now.

        Raises:
            SandboxError: there is no such process.
        """
        fields = _stat(pid)
        if fields is None:
            raise SandboxError("no such process", pid=pid)
        return cls(pid, int(fields[_STARTED]))

    @property
    def running(self) -> bool:
        """True while this process runs; false for a zombie, and for another process with the same PID."""
        fields = _stat(self.pid)
        return fields is not None and int(fields[_STARTED]) == self.started and fields[_STATE] not in "ZX"

    def signal(self, which: signals.Signals) -> None:
        """Send a signal if the process still runs."""
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, which)


def children(pid: int) -> list[Process]:
    """Return the processes whose parent is `pid`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) and int(fields[_PARENT]) == pid:
            found.append(Process(int(entry.name), int(fields[_STARTED])))
    return found


def working_in(folder: Path) -> list[Process]:
    """Return the processes whose working directory is `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, SandboxError):  # another user's process, or one that has just ended
            if entry.name.isdigit() and (entry / "cwd").readlink() == folder:
                found.append(Process.of(int(entry.name)))
    return found


def kill_all(processes: Sequence[Process], *, timeout: float = 10.0) -> None:
    """Send SIGKILL to the processes, and wait until they have ended.

    Raises:
        SandboxError: a process has not ended in time: it hangs in the kernel.
    """
    for process in processes:
        process.signal(signals.SIGKILL)
    deadline = time.monotonic() + timeout
    for process in processes:
        while process.running:
            if time.monotonic() > deadline:
                raise SandboxError("a killed process does not end", pid=process.pid)
            time.sleep(0.01)


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()
