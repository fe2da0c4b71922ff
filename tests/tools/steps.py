"""Runs steps side by side, each one after those it needs; one that fails ends the others and shows its log."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.tools.progress import Progress

_PAUSE: Final = 0.1
_TAIL: Final = 20
_COUNT: Final = re.compile(rb"(?m)^\[(\d+/\d+)\]")


@dataclass(frozen=True, slots=True)
class Step:
    """One command.

    Args:
        name: shown while the step runs; also names its log.
        command: program and arguments.
        needs: names of the steps that must have ended.
        seconds: about how long it takes on two cores with nothing cached; weighs the bar.
        key: what the step depends on. A step whose last success had the same key is not run; empty: always run.
        optional: a failure is reported and does not fail the run.
        environment: added to this process's.
    """

    name: str
    command: Sequence[str]
    needs: Sequence[str] = ()
    seconds: float = 1.0
    key: str = ""
    optional: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Running:
    step: Step
    process: subprocess.Popen[bytes]
    log: Path
    begun: float

    @property
    def shown(self) -> str:
        found = _COUNT.findall(self.log.read_bytes())
        return f"{self.step.name} {found[-1].decode()}" if found else self.step.name


class StepFailed(Exception):
    """A step ended with an error.

    Args:
        step: name of the step.
        code: exit code of its command.
        log: the file with its output.
    """

    def __init__(self, step: str, code: int, log: Path) -> None:
        super().__init__(step)
        self.step = step
        self.code = code
        self.log = log

    def __str__(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        tail = "\n".join(f"  {line}" for line in lines[-_TAIL:])
        return f"{self.step} failed with exit code {self.code}; the end of {self.log}:\n{tail}"


def run(steps: Sequence[Step], state: Path, progress: Progress) -> None:
    """Run the steps that are not done yet.

    Args:
        steps: with everything that they need among them.
        state: folder for the steps' keys and logs.
        progress: gets how far they are.

    Raises:
        StepFailed: a step that is not optional failed; the others were ended.
    """
    (state / "log").mkdir(parents=True, exist_ok=True)
    waiting = {step.name: step for step in steps if not (step.key and _key(state, step) == step.key)}
    total = sum(step.seconds for step in waiting.values())
    ended, running = 0.0, dict[str, _Running]()
    try:
        while waiting or running:
            for step in [one for one in waiting.values() if not {*waiting, *running} & set(one.needs)]:
                running[step.name] = _start(waiting.pop(step.name), state)
            time.sleep(_PAUSE)
            for one in [one for one in running.values() if one.process.poll() is not None]:
                del running[one.step.name]
                ended += one.step.seconds
                _end(one, state, progress)
            now = time.monotonic()
            part = sum(min(now - one.begun, 0.95 * one.step.seconds) for one in running.values())
            progress.show((ended + part) / total, [one.shown for one in running.values()])
    finally:
        progress.clear()
        for one in running.values():
            with suppress(ProcessLookupError):
                os.killpg(one.process.pid, signal.SIGTERM)
        for one in running.values():
            one.process.wait()


def _key(state: Path, step: Step) -> str:
    file = state / step.name.replace(" ", "-")
    return file.read_text() if file.exists() else ""


def _start(step: Step, state: Path) -> _Running:
    log = state / "log" / f"{step.name.replace(' ', '-')}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            step.command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **step.environment},
            start_new_session=True,
        )
    return _Running(step, process, log, time.monotonic())


def _end(one: _Running, state: Path, progress: Progress) -> None:
    seconds, code = time.monotonic() - one.begun, one.process.returncode
    if code and not one.step.optional:
        raise StepFailed(one.step.name, code, one.log)
    if code:
        reason = one.log.read_text(errors="replace").strip().partition("\n")[0]
        progress.say(f"{one.step.name} left out: {reason}")
        return
    progress.ended(one.step.name, seconds)
    if one.step.key:
        (state / one.step.name.replace(" ", "-")).write_text(one.step.key)
