"""Reads the targets of a service side by side; one that does not answer keeps only its own reading waiting.

A server that is frozen, but not closed, gives no error and may never answer. So each target is read in a thread of its
own, which does not keep the process from ending, and is not read again before that thread has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final

from connector.clock import Clock
from connector.kafka.ends import LogEnds
from connector.serve.services import ServedTarget
from connector.status.collect import Observation
from connector.status.report import ApplierStatus, End, Problem, ProducerStatus, ServiceState, Status

ANSWER_SECONDS: Final = 90.0  # after the reading has become stale, so that this is told first


@dataclass(slots=True)
class _Read:
    """A reading of a target, in its thread."""

    began: float
    done: Event = field(default_factory=Event)
    found: Observation | None = None
    error: Exception | None = None


class TargetReads:
    """The readings of a service.

    Args:
        read: reads a target, with source and log or without them.
        clock: tells when a reading began.
        wait: seconds to wait for an answer.
    """

    def __init__(self, read: Callable[[ServedTarget], Observation], clock: Clock, wait: float = ANSWER_SECONDS) -> None:
        self._read_one = read
        self._clock = clock
        self._wait = wait
        self._under_way: dict[str, _Read] = {}

    def read(self, service: str, targets: tuple[ServedTarget, ...]) -> list[tuple[float, Observation]]:
        """Read targets; return for each when its reading began, and what was found.

        Raises:
            Exception: what a reading raised.
        """
        waiting = [name for name, one in self._under_way.items() if not one.done.is_set()]
        begun = [target for target in targets if target.name not in waiting]
        for target in begun:
            one = self._under_way[target.name] = _Read(self._clock.monotonic())
            Thread(target=self._run, args=(target, one), name=f"read-{service}-{target.name}", daemon=True).start()
        for target in begun:
            self._under_way[target.name].done.wait(self._wait)
        return [self._result(service, target, ends_of(target, targets)) for target in targets]

    def _run(self, target: ServedTarget, one: _Read) -> None:
        try:
            one.found = self._read_one(target)
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            one.error = error
        finally:
            one.done.set()

    def _result(self, service: str, target: ServedTarget, ends: frozenset[End]) -> tuple[float, Observation]:
        one = self._under_way[target.name]
        if one.error is not None:
            raise one.error
        if one.found is not None:
            return one.began, one.found
        problem = Problem(
            "a server does not answer, and does not close the connection either",
            "the source, a broker or the target is frozen, or a firewall drops its packets",
        )
        unknown = ProducerStatus(state=ServiceState.UNKNOWN), ApplierStatus(state=ServiceState.UNKNOWN)
        return one.began, Observation(Status(service, *unknown, (problem,), ends), None, None, LogEnds(), None)


def ends_of(target: ServedTarget, targets: tuple[ServedTarget, ...]) -> frozenset[End]:
    """The ends that are read with a target: with the first one source and log, too."""
    return frozenset(End) if target is targets[0] else frozenset({End.TARGET})
