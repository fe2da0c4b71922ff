"""One running program: started in its own session, logged to a file, ended by its own pid."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from connector import private_files as private
from connector.errors import SandboxError
from connector.sandbox.process import Process, children, kill_all

_PAUSE = 0.05
_PR_SET_PDEATHSIG = 1


class Program:
    """A command that runs until it is stopped; it can be started again after that.

    Args:
        name: for messages.
        command: program and arguments, no shell.
        log: standard output and error are appended here.
        environment: added to ours.
        die_with_parent: the kernel kills it when the thread that started it ends. For tests and the demo; what
            `thl sandbox up` starts outlives the command.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        die_with_parent: bool = False,
    ) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._environment = dict(environment or {})
        self._die_with_parent = die_with_parent
        self._child: subprocess.Popen[bytes] | None = None
        self._logged_before = 0

    @property
    def pid(self) -> int | None:
        """The process id, also after its end; None before the first start."""
        return self._child.pid if self._child else None

    @property
    def running(self) -> bool:
        """It runs now."""
        return self._child is not None and self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs or before its first start."""
        return self._child.poll() if self._child else None

    @property
    def process(self) -> Process:
        """The identity of the running process, for other processes."""
        if self._child is None:
            raise SandboxError(f"{self.name} was never started")
        return Process.of(self._child.pid)

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.running:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._logged_before = self.log.stat().st_size if self.log.exists() else 0
        with private.open_to_append(self.log) as out:
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._environment},
                start_new_session=True,
                preexec_fn=_die_with(os.getpid()) if self._die_with_parent else None,  # noqa: PLW1509 (no threads of ours hold locks it takes)
            )

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout: float = 30.0) -> None:
        """Ask it to end, wait, and kill it when it does not."""
        if self._child is None or not self.running:
            return
        self._child.send_signal(how)
        try:
            self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """`kill -9`, at once, and its children too: a crash of the whole server."""
        if self._child is None or not self.running:
            return
        forked = children(self._child.pid)
        self._child.kill()
        self._child.wait()
        kill_all(forked)

    def log_tail(self, lines: int = 15) -> str:
        """The last lines it logged since it was last started."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._logged_before, size - 16_384))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


def _die_with(parent: int) -> Callable[[], None]:
    """Make what runs in the child between fork and exec; the C library is loaded here, before the fork."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask


def wait_until(program: Program, answers: Callable[[], bool], *, timeout: float) -> None:
    """Ask `answers` again and again until it says yes.

    Raises:
        SandboxError: when the program ends first, or `timeout` seconds pass; with the end of its log.
    """

    def ended_or_answers() -> bool:
        return not program.running or answers()

    try:
        Retrying(retry=retry_if_result(lambda yes: not yes), stop=stop_after_delay(timeout), wait=wait_fixed(_PAUSE))(
            ended_or_answers
        )
    except RetryError as error:
        program.kill()
        raise SandboxError(
            f"{program.name} did not answer within {timeout:.0f} s\n{program.log_tail()}", log=program.log
        ) from error
    if not program.running:
        raise SandboxError(f"{program.name} ended while starting\n{program.log_tail()}", log=program.log)


def exchange(host: str, port: int, request: bytes, *, answer_bytes: int = 1) -> bytes:
    """Send `request` and return the first bytes of the answer; empty when there is none."""
    try:
        with closing(socket.create_connection((host, port), timeout=2.0)) as connection:
            connection.sendall(request)
            answer = b""
            while len(answer) < answer_bytes and (more := connection.recv(answer_bytes - len(answer))):
                answer += more
            return answer
    except OSError:
        return b""
