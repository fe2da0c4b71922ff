"""Runs a program in its own session, with its output in a file, and ends it by its PID."""

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
    """Runs a command until it is stopped; can start it again afterwards.

    Args:
        name: the program's name in errors.
        command: program and arguments, no shell.
        log: the file to which standard output and standard error are appended.
        environment: variables added to those of this process.
        die_with_parent: the kernel kills the program when the thread that started it ends. For tests and the demo;
            servers of `thl sandbox up` outlive the command.
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
        """The process ID, also after the end; None before the first start."""
        return self._child.pid if self._child else None

    @property
    def running(self) -> bool:
        """True while the program runs."""
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
        """Start the program unless it runs."""
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
                preexec_fn=_die_with(os.getpid()) if self._die_with_parent else None,  # noqa: PLW1509 (no thread of this process holds a lock that it needs)
            )

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout: float = 30.0) -> None:
        """Send a signal and wait for the end; kill the program if it does not end in time."""
        if self._child is None or not self.running:
            return
        self._child.send_signal(how)
        try:
            self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL to the program and its children, as in a crash of the whole server."""
        if self._child is None or not self.running:
            return
        forked = children(self._child.pid)
        self._child.kill()
        self._child.wait()
        kill_all(forked)

    def log_tail(self, lines: int = 15) -> str:
        """Return the last lines of its output since the last start."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._logged_before, size - 16_384))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


def _die_with(parent: int) -> Callable[[], None]:
    """Return the function to run in the child between fork and exec; loads the C library now, before the fork."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the call above
            os._exit(1)

    return ask


def wait_until(program: Program, answers: Callable[[], bool], *, timeout: float) -> None:
    """Call `answers` repeatedly until it returns True.

    Raises:
        SandboxError: the program ended first, or `timeout` seconds have passed; the message has the end of its log.
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
    """Send `request` and return the first bytes of the answer; b"" if there is none."""
    try:
        with closing(socket.create_connection((host, port), timeout=2.0)) as connection:
            connection.sendall(request)
            answer = b""
            while len(answer) < answer_bytes and (more := connection.recv(answer_bytes - len(answer))):
                answer += more
            return answer
    except OSError:
        return b""
