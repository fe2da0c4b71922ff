"""The health of this process for `/healthz` and `/readyz`: whether its loops go on, and whether it does its work.

A loop that has begun no iteration for `BOUND` seconds is stuck: threads wait for each other, or for a child process
that is stopped. An iteration's own waits are shorter: a fifth of a second for input, a minute for Kafka. Waits for
servers are not counted: they have no bound (an ALTER TABLE of hours on a target, a replica that lags for a day), and a
process that an orchestrator starts again would wait for the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from connector.clock import Clock, SystemClock

BOUND: Final = 600.0  # seconds


class Answer(NamedTuple):
    """The answer to a probe.

    Args:
        ok: true: the process is healthy, or ready.
        text: the reason, as a line for people.
    """

    ok: bool
    text: str


class Loop:
    """A loop of one thread.

    Args:
        name: its name in the answer to a probe.
        clock: the clock.
        bound: seconds without an iteration after which it is stuck.
    """

    def __init__(self, name: str, clock: Clock, bound: float = BOUND) -> None:
        self.name = name
        self._clock = clock
        self._bound = bound
        self._turned: float | None = None  # None: not under way, or in a wait that does not count

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Expect iterations while in the context."""
        self.turn()
        try:
            yield
        finally:
            self._turned = None

    def turn(self) -> None:
        """Note that an iteration begins."""
        self._turned = self._clock.monotonic()

    @contextmanager
    def waits(self) -> Iterator[None]:
        """Leave out the time in the context, in which the loop waits for a server or for another loop."""
        turned, self._turned = self._turned, None
        began = self._clock.monotonic()
        try:
            yield
        finally:
            if turned is not None:
                self._turned = turned + self._clock.monotonic() - began

    @property
    def stuck_for(self) -> float | None:
        """The seconds since its last iteration began, if they exceed the bound; None: it is not stuck."""
        turned = self._turned
        seconds = 0.0 if turned is None else self._clock.monotonic() - turned
        return seconds if seconds > self._bound else None


class ProcessHealth:
    """The loops of this process, and its state.

    Args:
        clock: the clock.
        bound: seconds without an iteration after which a loop is stuck.
    """

    def __init__(self, clock: Clock | None = None, bound: float = BOUND) -> None:
        self._clock = clock or SystemClock()
        self._bound = bound
        self._loops: dict[str, Loop] = {}
        self._state = Answer(ok=False, text="starting")

    def loop(self, name: str) -> Loop:
        """Return the loop of a name; a new one if there is none."""
        return self._loops.setdefault(name, Loop(name, self._clock, self._bound))

    def enter(self, state: str, *, ready: bool) -> None:
        """Note the state of the process.

        Args:
            state: in words, for people.
            ready: true if it does its work.
        """
        self._state = Answer(ready, state)

    def alive(self) -> Answer:
        """Return the answer of `/healthz`."""
        return alive(self._loops.values())

    def ready(self) -> Answer:
        """Return the answer of `/readyz`: not ready in a state without work, or if a loop is stuck."""
        return self._state if (found := self.alive()).ok else found


def alive(loops: Iterable[Loop]) -> Answer:
    """Return the answer of `/healthz` of a process that has these loops."""
    stuck = [(loop.name, seconds) for loop in loops if (seconds := loop.stuck_for) is not None]
    text = ", ".join(f"{name} has not gone on for {seconds:.0f} s" for name, seconds in stuck)
    return Answer(not stuck, text or "ok")
