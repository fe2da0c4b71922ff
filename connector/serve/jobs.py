"""The buttons: each runs a command of `thl` in a process of its own, with the service's configuration.

So a button does what the command does, with its refusals and remedies, and a comparison that needs much memory does not
disturb the server.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock, Thread, Timer
from typing import Final

from connector.clock import Clock
from connector.errors import ConfigError, ConnectorError
from connector.serve.history import Comparison
from connector.serve.services import ServedService, ServedTarget

LOG: Final = logging.getLogger("connector.serve")
MOST_RUNNING: Final = 4  # besides those that end a process, which are short and must not wait
KEPT: Final = 20  # jobs of all services that have ended
LINES: Final = 200  # of a job's output
LINE: Final = 500  # characters
TEXT: Final = 500  # characters of a field
VERDICTS: Final = {0: "equal", 9: "different", 13: "not all compared"}  # of `thl verify`, by exit code
COMMAND_GRACE: Final = 5.0  # seconds for a command that is ended, e.g. with the server


class ButtonAction(StrEnum):
    """The action of a button."""

    OFFLINE = "offline"
    OFFLINE_PRODUCER = "offline-producer"
    HEARTBEAT = "heartbeat"
    LOAD = "load"
    VERIFY = "verify"


ENDING: Final = frozenset({ButtonAction.OFFLINE, ButtonAction.OFFLINE_PRODUCER})
FIELDS: Final = {
    ButtonAction.OFFLINE: {"target", "reason"},
    ButtonAction.OFFLINE_PRODUCER: {"reason"},
    ButtonAction.HEARTBEAT: {"name"},
    ButtonAction.LOAD: {"table", "for_target"},
    ButtonAction.VERIFY: {"target", "table"},
}


@dataclass(slots=True)
class Job:
    """A command that a button has started.

    Args:
        number: of the job, ascending.
        action: what was asked for.
        service, target: of whom; the target's name.
        words: the command line, without the options that name the configuration.
        asked_from: the address of the client.
        started: seconds since 1970 UTC.
        ended: when it ended; None: it runs.
        exit_code: its exit code; negative: it was killed.
        overdue: it was ended after `serve.command_timeout`.
        output: its last lines. They may have values of rows.
    """

    number: int
    action: ButtonAction
    service: str
    target: str
    words: tuple[str, ...]
    asked_from: str
    started: float
    ended: float | None = None
    exit_code: int | None = None
    overdue: bool = False
    output: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))

    @property
    def state(self) -> str:
        """running, done, or how it ended."""
        if self.exit_code is None:
            return "running"
        if self.overdue:
            return "ended after serve.command_timeout"
        if self.action is ButtonAction.VERIFY and self.exit_code in VERDICTS:
            return VERDICTS[self.exit_code]
        return "done" if self.exit_code == 0 else f"failed with exit code {self.exit_code}"

    def as_object(self) -> dict[str, object]:
        """The job for JSON."""
        return {
            "number": self.number,
            "action": self.action,
            "target": self.target,
            "command": " ".join(self.words),
            "askedFrom": self.asked_from,
            "started": self.started,
            "ended": self.ended,
            "exitCode": self.exit_code,
            "state": self.state,
            "output": list(self.output),
        }


class Jobs:
    """Starts commands, and keeps what they said.

    Args:
        sets: the `--set` options of this process, which the commands get, too.
        clock: the time of jobs.
        compared: called with the service's name and the result of each comparison of all tables.
        program: the program `thl`.
        timeout: seconds after which a command is ended.
    """

    def __init__(
        self,
        sets: Sequence[str],
        clock: Clock,
        compared: Callable[[str, Comparison], None],
        program: Sequence[str] = (sys.executable, "-P", "-m", "connector"),
        timeout: float = 6 * 3600.0,
    ) -> None:
        self._timeout = timeout
        self._program = tuple(program)
        self._sets = tuple(sets)
        self._clock = clock
        self._compared = compared
        self._jobs: deque[Job] = deque()
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._number = 0
        self._closed = False
        self._lock = Lock()

    def of(self, service: str) -> list[Job]:
        """Return the jobs of a service, newest first."""
        with self._lock:
            return [job for job in reversed(self._jobs) if job.service == service]

    def start(self, service: ServedService, action: ButtonAction, given: Mapping[str, str], asked_from: str) -> Job:
        """Start the command of a button.

        Args:
            service: of whom.
            action: what is to be done.
            given: the fields of the form.
            asked_from: the address of the client.

        Raises:
            ConfigError: a field is wrong, or too much is running.
            ConnectorError: the machine starts no more processes.
        """
        target = _target(service, given.get("target", ""))
        words = command_of(action, given, asked_from)
        with self._lock:
            running = [job for job in self._jobs if job.ended is None]
            same = any((job.service, job.target, job.action) == (service.name, target.name, action) for job in running)
            others = sum(job.action not in ENDING for job in running)
            if self._closed or same or (action not in ENDING and others >= MOST_RUNNING):
                raise ConfigError("the same, or too much else, is running: wait for its end")
            self._number += 1
            job = Job(self._number, action, service.name, target.name, words, asked_from, self._clock.now() / 1e6)
            process = self._started([*self._program, words[1], *self._options(target), *words[2:]])
            self._processes[job.number] = process
            self._jobs.append(job)
            self._forget()
        place = {"service": service.name, "target": target.name, "address": asked_from}
        LOG.info("a command was asked for", extra={"command": " ".join(words), "job": job.number, **place})
        Thread(target=self._follow, args=(job, process), name=f"job-{job.number}", daemon=True).start()
        return job

    def close(self) -> None:
        """End the commands that run, and start no other."""
        with self._lock:
            self._closed = True
            running = list(self._processes.values())
        for process in running:
            process.terminate()
        until = self._clock.monotonic() + COMMAND_GRACE
        for process in running:
            try:
                process.wait(max(until - self._clock.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                process.kill()

    def _started(self, command: Sequence[str]) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise ConnectorError(
                f"the command cannot be started: {error.strerror}",
                hint="memory, processes or open files of this machine are used up",
            ) from error

    def _options(self, target: ServedTarget) -> list[str]:
        named = [] if target.file is None else ["--config", str(target.file)]
        return [*named, *(word for one in self._sets for word in ("--set", one))]

    def _follow(self, job: Job, process: subprocess.Popen[str]) -> None:
        overdue = Timer(self._timeout, self._end_overdue, (job, process))
        overdue.daemon = True
        overdue.start()
        try:
            self._read(job, process)
        finally:
            overdue.cancel()

    def _end_overdue(self, job: Job, process: subprocess.Popen[str]) -> None:
        """End a command that takes too long; others of its kind would wait for ever."""
        job.overdue = True
        LOG.warning("a command takes too long, and is ended", extra={"job": job.number, "seconds": self._timeout})
        process.terminate()
        try:
            process.wait(COMMAND_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()

    def _read(self, job: Job, process: subprocess.Popen[str]) -> None:
        if process.stdout is not None:
            with process.stdout as lines:
                while line := lines.readline(LINE):
                    job.output.append(line.rstrip("\n"))
        code = process.wait()
        try:
            if (
                job.action is ButtonAction.VERIFY
                and not job.overdue
                and code in VERDICTS
                and "--table" not in job.words
            ):
                self._compared(job.service, Comparison(self._clock.now() / 1e6, job.target, VERDICTS[code]))
        finally:
            with self._lock:
                job.exit_code, job.ended = code, self._clock.now() / 1e6
                del self._processes[job.number]
            LOG.info("a command has ended", extra={"job": job.number, "exit_code": code})

    def _forget(self) -> None:
        """Drop the oldest jobs that have ended."""
        ended = [job for job in self._jobs if job.ended is not None]
        for job in ended[: max(len(ended) - KEPT, 0)]:
            self._jobs.remove(job)


def command_of(action: ButtonAction, given: Mapping[str, str], asked_from: str) -> tuple[str, ...]:
    """Return the command line of a button. No field can become an option.

    Raises:
        ConfigError: a field is missing, wrong or unknown.
    """
    if unknown := sorted(given.keys() - FIELDS[action]):
        known = ", ".join(sorted(FIELDS[action]))
        raise ConfigError(f"{action} has no field {', '.join(unknown)}", hint=f"its fields: {known}")
    fields = {name: _checked(name, value) for name, value in given.items()}
    reason = f"{fields.get('reason') or 'no reason given'} (thl serve, {asked_from})"
    match action:
        case ButtonAction.OFFLINE:
            return ("thl", "offline", f"--reason={reason}")
        case ButtonAction.OFFLINE_PRODUCER:
            return ("thl", "offline", "--producer", f"--reason={reason}")
        case ButtonAction.HEARTBEAT:
            return ("thl", "heartbeat", "--", fields.get("name") or "serve")
        case ButtonAction.LOAD:
            if not fields.get("table"):
                raise ConfigError("load: no table is named", hint="schema.table, with * and ?")
            only = (f"--for-target={fields['for_target']}",) if fields.get("for_target") else ()
            return ("thl", "load", *only, "--", fields["table"])
        case ButtonAction.VERIFY:
            return ("thl", "verify", *(("--table", fields["table"]) if fields.get("table") else ()))


def _checked(name: str, value: str) -> str:
    """Return a field without surrounding blanks.

    Raises:
        ConfigError: it is too long, has a character that no command line has, or is a table like an option.
    """
    value = value.strip()
    if len(value) > TEXT or "\0" in value:
        raise ConfigError(f"{name}: at most {TEXT} characters")
    if name == "table" and value.startswith("-"):
        raise ConfigError(f"{name}: not schema.table")
    return value


def _target(service: ServedService, name: str) -> ServedTarget:
    found = next((one for one in service.targets if one.name == name), None)
    if name and found is None:
        raise ConfigError(f"the service has no target {name}")
    return found or service.targets[0]
