"""Reads a service again and again, as `thl status` does, and keeps the newest reading. It claims nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Event
from typing import Final, Protocol

from connector.clock import Clock
from connector.config.model import Config
from connector.config.serve import Serve
from connector.errors import ConnectorError
from connector.health import BOUND, Loop
from connector.kafka.log_reader import LogReader
from connector.log.epochs.newest_load import NewestLoad
from connector.serve.history import PRODUCER, Comparison, LagHistory, target_key
from connector.serve.incidents import Incident, Incidents
from connector.serve.services import ServedService, ServedTarget
from connector.serve.source_ends import SourceEnds
from connector.serve.target_reads import TargetReads, ends_of
from connector.status.catch_up import CatchUp, Estimate, Sample
from connector.status.collect import Observation, observe
from connector.status.report import ApplierStatus, End, LagLimits, Problem, ProducerStatus, ServiceState, problems_of

LOG: Final = logging.getLogger("connector.serve")
STUCK: Final = BOUND  # seconds beyond three intervals: more than any server may keep a reading waiting
STALE: Final = 60.0  # seconds beyond three intervals and readings after which a reading no longer counts
DOWN: Final = frozenset({ServiceState.OFFLINE, ServiceState.NONE})


class Observe(Protocol):
    """Reads a status, as `connector.status.collect.observe`."""

    def __call__(
        self, config: Config, limits: LagLimits, clock: Clock, *, ends: frozenset[End], measure: bool
    ) -> Observation:
        """Read the status of the given ends."""


@dataclass(frozen=True, slots=True)
class TargetReading:
    """One reading of a target.

    Args:
        observation: the applier's numbers.
        estimate: lag and rates of the last 30 seconds, or since the reading before where that is longer; None: nothing
            was applied yet, the target does not answer, or there was no reading before.
    """

    observation: Observation
    estimate: Estimate | None

    @property
    def applier(self) -> ApplierStatus:
        """The applier's numbers."""
        return self.observation.status.applier

    @property
    def catch_up_seconds(self) -> float | None:
        """Estimated seconds until every event is applied; None: unknown, or never at these rates."""
        return None if self.estimate is None else self.estimate.seconds


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a service, with all its targets.

    Args:
        at: the time, in µs since 1970 UTC.
        ended: when it ended, in seconds of the monotonic clock: the other one may be put back.
        seconds: the time that it took.
        first: the numbers of the source, the log and the first target.
        targets: by name.
        prepared_since: when the oldest XA transaction was prepared that is undecided, in µs since 1970 UTC; None: there
            is none, or it is not known.
        problems: of all ends.
    """

    at: int
    ended: float
    seconds: float
    first: Observation
    targets: Mapping[str, TargetReading]
    prepared_since: int | None
    problems: tuple[Problem, ...]

    @property
    def producer(self) -> ProducerStatus:
        """The producer's numbers."""
        return self.first.status.producer

    @property
    def loads(self) -> list[NewestLoad]:
        """The newest load of each table."""
        control = self.first.control
        return [] if control is None else list(NewestLoad.each(control.load_requests, control.loads, control.trapped))

    @property
    def trapped(self) -> int:
        """The number of trapped events."""
        control = self.first.control
        return 0 if control is None else sum(one.last - one.first + 1 for one in control.trapped)


class LagBound:
    """The bound of one lag of a service that is read again and again.

    `thl status` reads once: its lag is the age of the last event of producer or applier while others are missing. On a
    source that was idle for hours that is hours, for the moment that the first new event needs. A reader who has seen
    before that nothing was missing knows better: what is missing is younger than that reading.
    """

    def __init__(self) -> None:
        self._seqno = -1
        self._complete_at: float | None = None

    def bounded(self, at: float, seqno: int, lag: float | None, complete_at: float | None) -> float | None:
        """Return a lag, or the time since nothing was missing where that is shorter.

        Args:
            at: when the lag was read, in seconds of a monotonic clock.
            seqno: the last event. One that is smaller than before was taken back, or is of another log.
            lag: in seconds; None: unknown.
            complete_at: a time at which the source had nothing that is missing now; None: something is missing, or
                that is not known.
        """
        if seqno < self._seqno:
            self._complete_at = None
        self._seqno = seqno
        if complete_at is not None:
            self._complete_at = complete_at
        return lag if lag is None or self._complete_at is None else min(lag, at - self._complete_at)


class Watcher:
    """Reads a service in a thread of its own.

    Args:
        service: what is read.
        settings: interval and limits.
        clock: the time of the readings.
        history: gets the lags.
        read: reads a status.
    """

    def __init__(
        self, service: ServedService, settings: Serve, clock: Clock, history: LagHistory, read: Observe = observe
    ) -> None:
        self.service = service
        self.history = history
        self.comparisons: dict[str, Comparison] = {}
        self._settings = settings
        self._clock = clock
        self._read = read
        self._reads = TargetReads(self._read_target, clock)
        self.limits = LagLimits(settings.max_behind, settings.min_purge)
        self._estimates = {target.name: CatchUp(least=2) for target in service.targets}
        self._producer_bound = LagBound()
        self._source_ends = SourceEnds()
        self._bounds = {target.name: LagBound() for target in service.targets}
        self._incidents = Incidents()
        self._newest: Reading | None = None
        self._began = clock.monotonic()
        self.loop = Loop(f"reading {service.name}", clock, STUCK + 3 * settings.interval)
        self.loop.turn()

    @property
    def newest(self) -> Reading | None:
        """The newest reading; None before the first."""
        return self._newest

    @property
    def incidents(self) -> list[Incident]:
        """The last problems."""
        return self._incidents.all()

    @property
    def age(self) -> float:
        """Seconds since the newest reading ended; before the first one, since the watcher was made."""
        return self._clock.monotonic() - (self._began if self._newest is None else self._newest.ended)

    def is_stale(self, reading: Reading | None) -> bool:
        """True if a reading is too old to count: a server keeps the next one waiting for longer than this one."""
        age, took = (self.age, 0.0) if reading is None else (self._clock.monotonic() - reading.ended, reading.seconds)
        return age > 3 * (self._settings.interval + took) + STALE

    def run(self, ended: Event) -> None:
        """Read until `ended` is set. What no reading should raise is logged, and the next one is tried."""
        while not ended.is_set():
            try:
                self.read()
            except Exception:
                LOG.exception("a reading has failed", extra={"service": self.service.name})
            ended.wait(self._settings.interval)

    def compared(self, comparison: Comparison) -> None:
        """Take over the result of a comparison."""
        self.comparisons[comparison.target] = comparison
        self.history.keep("comparison", comparison.as_object())

    def read(self) -> Reading:
        """Read the service once."""
        began = self._clock.monotonic()
        targets: dict[str, TargetReading] = {}
        problems: dict[Problem, None] = {}  # in their order
        complete_at: float | None = None  # the log has everything that the source had then
        readings = self._reads.read(self.service.name, self.service.targets)
        for target, (at, found) in zip(self.service.targets, readings, strict=True):
            if not targets:
                complete_at = self._source_ends.passed(began, found.source, found.position)
                if found.status.producer.events_behind == 0:
                    complete_at = began
            found = self._bounded(target.name, found, at, complete_at)  # noqa: PLW2901
            targets[target.name] = TargetReading(found, self._estimate(target.name, found))
            for problem in found.status.problems:
                if problem in problems:
                    continue  # of the log, which each target's reading has
                if len(targets) > 1:
                    problem = replace(problem, text=f"target {target.name}: {problem.text}")  # noqa: PLW2901
                problems[problem] = None
        first = targets[self.service.targets[0].name].observation
        ended = self._clock.monotonic()
        reading = Reading(
            at=self._clock.now(),
            ended=ended,
            seconds=ended - began,
            first=first,
            targets=targets,
            prepared_since=self._prepared_since(first),
            problems=tuple(problems),
        )
        self._incidents.update(problems, reading.at)
        self._remember(reading)
        self._newest = reading
        self.loop.turn()
        return reading

    def _read_target(self, target: ServedTarget) -> Observation:
        ends = ends_of(target, self.service.targets)
        return self._read(target.config, self.limits, self._clock, ends=ends, measure=False)

    def _bounded(self, name: str, found: Observation, at: float, complete_at: float | None) -> Observation:
        """Bound the lags, and with them the problems, by what earlier readings have seen."""
        status = found.status
        producer, applier = status.producer, status.applier
        if End.PRODUCER in status.ends:
            bound = self._producer_bound
            lag = bound.bounded(at, producer.maximum_stored_seqno, producer.seconds_behind, complete_at)
            producer = replace(producer, seconds_behind=lag)
        if found.target is not None:
            complete_at = complete_at if applier.events_behind == 0 else None
            lag = self._bounds[name].bounded(at, applier.applied_last_seqno, applier.seconds_behind, complete_at)
            applier = replace(applier, seconds_behind=lag)
        if (producer, applier) == (status.producer, status.applier):
            return found
        before = dict.fromkeys(problems_of(status.producer, status.applier, self.limits))
        after = dict.fromkeys(problems_of(producer, applier, self.limits))
        kept = [problem for problem in status.problems if problem not in before or problem in after]
        problems = (*kept, *(problem for problem in after if problem not in before))
        return replace(found, status=replace(status, producer=producer, applier=applier, problems=problems))

    def _estimate(self, name: str, found: Observation) -> Estimate | None:
        applier = found.status.applier
        if applier.events_behind is None or found.target is None:
            return None
        seqno = applier.applied_last_seqno
        self._estimates[name].add(Sample(self._clock.monotonic(), seqno, seqno + applier.events_behind))
        return self._estimates[name].estimate() if self._estimates[name].span else None

    def _prepared_since(self, found: Observation) -> int | None:
        """Return when the oldest undecided XA transaction was prepared; its topic is read only if there is one."""
        if found.position is None or not found.position.prepared.count:
            return None
        try:
            with LogReader(self.service.config) as reader:
                return min((one.time for one in reader.prepared().pending), default=None)
        except ConnectorError:
            return None  # the next reading of the log reports it

    def _remember(self, reading: Reading) -> None:
        lag: dict[str, float | None] = {PRODUCER: reading.producer.seconds_behind}
        seqno = {PRODUCER: reading.producer.maximum_stored_seqno} if reading.producer.log_id else {}
        for name, target in reading.targets.items():
            lag[target_key(name)] = target.applier.seconds_behind
            if target.observation.target is not None:
                seqno[target_key(name)] = target.applier.applied_last_seqno
        self.history.add(reading.at / 1e6, lag, seqno)
