"""The watcher: problems with times and remedies, several targets, and readings that are too old."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Barrier, Event
from types import SimpleNamespace
from typing import Any

import pytest

from connector.config.model import Config
from connector.config.serve import Serve
from connector.health import alive
from connector.log.transaction.position import SourcePosition
from connector.serve.incidents import MOST, Incidents
from connector.serve.objects import ServiceHealth, health_of
from connector.serve.watcher import Reading
from connector.status.collect import Observation
from connector.status.report import End, Problem, ServiceState
from connector.status.source import SourceView
from tests.support.clock import PATIENCE, Slept
from tests.support.problems import texts
from tests.support.serving import APPLIER, POSITION, PRODUCER, Readings, config, observation, troubled, watcher


def test_first_target_is_read_with_the_source_and_others_alone() -> None:
    readings = Readings()
    found = watcher(readings, None, None, config(target="a"), config(target="b")).read()
    assert sorted(map(len, readings.asked)) == [1, 2]
    assert frozenset(End) in readings.asked
    assert list(found.targets) == ["a", "b"]


def test_problems_of_further_targets_have_their_names_and_those_of_the_log_come_once() -> None:
    log, odd = Problem("the brokers do not answer"), Problem("it is odd")
    readings = Readings(of_target={"a": observation(problems=(log, odd))})
    readings.of_target["b"] = observation(problems=(log, Problem("it is even", "wait")))
    watched = watcher(readings, None, None, config(target="a"), config(target="b"))
    found = watched.read()
    assert found.problems == (log, odd, Problem("target b: it is even", "wait"))


@pytest.mark.parametrize(("prepared", "since"), [(0, None), (2, 30)])
def test_oldest_prepared_transaction_is_read_if_there_is_one(
    prepared: int, since: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Config] = []

    @contextmanager
    def reader(config: Config) -> Iterator[Any]:
        asked.append(config)
        pending = [SimpleNamespace(time=50), SimpleNamespace(time=30)]
        yield SimpleNamespace(prepared=lambda: SimpleNamespace(pending=pending))

    monkeypatch.setattr("connector.serve.watcher.LogReader", reader)
    position = replace(POSITION, prepared=replace(POSITION.prepared, count=prepared))
    watched = watcher(Readings(replace(observation(), position=position)))
    assert watched.read().prepared_since == since
    assert len(asked) == bool(prepared)


def test_problem_that_comes_again_begins_again() -> None:
    incidents = Incidents()
    for now, problems in ((1, ["odd"]), (2, []), (3, ["odd"]), (4, ["odd"])):
        incidents.update(map(Problem, problems), now)
    assert [(one.since, one.last) for one in incidents.all()] == [(3, 4)]


def test_oldest_problems_are_forgotten_first() -> None:
    incidents = Incidents()
    for now in range(60):
        incidents.update(map(Problem, [f"problem p{now}", "it lasts"]), now)
    kept = incidents.all()
    assert [one.problem.text for one in kept[:2]] == ["it lasts", "problem p59"]
    assert (len(kept), kept[-1].problem.text) == (MOST, f"problem p{60 - MOST + 1}")


def test_problem_keeps_its_begin_and_is_shown_when_it_is_over() -> None:
    clock, readings = Slept(), Readings(troubled())
    watched = watcher(readings, None, clock)
    began = watched.read().at
    clock.sleep(60)
    readings.now = observation(replace(PRODUCER, events_behind=99, seconds_behind=190.0))
    watched.read()
    by_text = {incident.problem.text: incident for incident in watched.incidents}
    behind = by_text["the producer is 190 s behind (99 events)"]
    assert (behind.present, behind.since) == (True, began)
    assert behind.problem.remedy.startswith("thl info --source")
    source = by_text["the source does not answer [host=mysql.example]"]
    assert (source.present, source.last, source.problem.remedy) == (False, began, "start MySQL, or correct source.host")


def test_problems_of_tables_servers_and_targets_are_told_apart() -> None:
    problems = [
        "table is not applied: shop.orders_2023 since 41",
        "table is not applied: shop.orders_2024 since 42",
        "table is not applied: shop.orders 1 since 43",
        "table is not applied: shop.orders 2 since 44",
        "the source does not answer [host=10.0.0.1 port=3306]",
        "the source does not answer [host=10.0.0.2 port=3306]",
        "target 1: the applier is 130 s behind (99 events)",
        "target 2: the applier is 170 s behind (12 events)",
    ]
    incidents = Incidents()
    incidents.update(map(Problem, problems), 1)
    assert {one.problem.text for one in incidents.all()} == set(problems)
    later = [problem.replace("130", "171.5").replace("since 4", "since 5") for problem in problems]
    incidents.update(map(Problem, later), 2)
    assert {one.problem.text for one in incidents.all()} == set(later)
    assert {one.since for one in incidents.all()} == {1}


def test_health_follows_the_reading_and_its_age() -> None:
    clock, readings = Slept(), Readings()
    watched = watcher(readings, Serve(interval=5), clock)
    assert health_of(watched) is ServiceHealth.UNKNOWN
    watched.read()
    assert health_of(watched) is ServiceHealth.OK
    readings.now = observation(applier=replace(APPLIER, excluded_tables=("shop.t since 4",)))
    watched.read()
    assert health_of(watched) is ServiceHealth.WARNING
    readings.now = observation(applier=replace(APPLIER, state=ServiceState.OFFLINE))
    watched.read()
    assert health_of(watched) is ServiceHealth.DOWN
    clock.sleep(76)
    assert health_of(watched) is ServiceHealth.UNKNOWN


def test_rate_and_time_to_catch_up_come_from_the_readings() -> None:
    clock, readings = Slept(), Readings()
    watched = watcher(readings, None, clock)
    for applied in (1000, 2000, 3000):
        readings.now = observation(
            replace(PRODUCER, maximum_stored_seqno=9000),
            replace(APPLIER, applied_last_seqno=applied, events_behind=9000 - applied, seconds_behind=9.0),
        )
        found = watched.read()
        clock.sleep(10)
    estimate = found.targets["target"].estimate
    assert estimate is not None
    assert (estimate.applied, estimate.published, estimate.seconds) == (100.0, 0.0, 60.0)
    assert watcher(readings, None, clock).read().targets["target"].estimate is None  # one reading has no rate


def test_rate_of_a_long_interval_is_that_since_the_reading_before() -> None:
    clock, readings = Slept(), Readings()
    watched = watcher(readings, Serve(interval=60), clock)
    for applied in (1000, 4000, 10_000):
        readings.now = observation(applier=replace(APPLIER, applied_last_seqno=applied, events_behind=600))
        found = watched.read()
        clock.sleep(60)
    estimate = found.targets["target"].estimate
    assert estimate is not None
    assert estimate.applied == 100.0


def test_reading_that_fails_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    ended, asked = Event(), []

    class Failing(Readings):
        def __call__(self, *args: Any, **options: Any) -> Observation:
            asked.append(1)
            if len(asked) == 1:
                raise KeyError("no reading should raise this")
            ended.set()
            return super().__call__(*args, **options)

    watched = watcher(Failing(), Serve(interval=0.001))
    watched.run(ended)
    assert watched.newest is not None
    assert "a reading has failed" in caplog.text
    assert caplog.records[0].exc_info


@dataclass
class PutBack(Slept):
    """A clock whose date is not its monotonic time."""

    by: float = 0.0

    def now(self) -> int:
        return int((self.seconds - self.by) * 1e6)


def test_clock_that_is_put_back_makes_no_reading_younger() -> None:
    clock = PutBack(1_760_000_000.0)
    watched = watcher(Readings(), None, clock)
    watched.read()
    clock.by = 3600
    clock.sleep(80)
    assert health_of(watched) is ServiceHealth.UNKNOWN
    clock.by = -3600
    watched.read()
    assert health_of(watched) is ServiceHealth.OK


def test_readings_that_take_long_count_until_the_next_one() -> None:
    clock = Slept()

    class Slow(Readings):
        def __call__(self, *args: Any, **options: Any) -> Observation:
            clock.sleep(30)  # as each target's does while Kafka does not answer
            return super().__call__(*args, **options)

    targets = [config(target=name) for name in "abc"]
    watched = watcher(Slow(), None, clock, *targets)
    watched.read()
    clock.sleep(5 + 3 * 30)
    assert health_of(watched) is ServiceHealth.OK
    clock.sleep(600)
    assert health_of(watched) is ServiceHealth.UNKNOWN


def test_service_is_stuck_after_ten_minutes_without_a_reading() -> None:
    clock = Slept()
    watched = watcher(Readings(), Serve(interval=5), clock)
    clock.sleep(614)
    assert alive([watched.loop]).ok
    clock.sleep(2)
    assert alive([watched.loop]) == (False, "reading shop has not gone on for 616 s")
    watched.read()
    assert alive([watched.loop]).ok


def at(source: int | None, log: int, target: int, *, lag: float) -> Observation:
    """A reading of a source of which the log lacks some events, and the target others; both lags are a number."""
    producer = replace(
        PRODUCER,
        maximum_stored_seqno=log,
        events_behind=source,
        seconds_behind=None if source is None else lag * bool(source),
    )
    missing = log - target
    applier = replace(APPLIER, applied_last_seqno=target, events_behind=missing, seconds_behind=lag * bool(missing))
    return observation(producer, applier)


def lags_of(found: Reading) -> tuple[float | None, float | None]:
    return found.producer.seconds_behind, found.targets["target"].applier.seconds_behind


def test_first_event_after_a_quiet_night_is_no_lag_of_a_night() -> None:
    clock, readings = Slept(), Readings(at(0, 7, 7, lag=0))
    watched = watcher(readings, None, clock)
    watched.read()
    clock.sleep(5)
    readings.now = at(1, 7, 7, lag=28_800)
    assert lags_of(watched.read()) == (5, 0)
    clock.sleep(5)
    readings.now = at(0, 8, 7, lag=28_805)
    found = watched.read()
    assert lags_of(found) == (0, 10)
    assert found.problems == ()
    clock.sleep(90)
    readings.now = at(0, 9, 7, lag=28_895)
    found = watched.read()
    assert lags_of(found) == (0, 100)
    assert texts(found.problems) == ["the applier is 100 s behind (2 events)"]
    clock.sleep(5)
    readings.now = at(1, 9, 8, lag=30)
    assert lags_of(watched.read()) == (5, 30)


def test_lag_that_no_reading_bounds_stays() -> None:
    clock, readings = Slept(), Readings(at(None, 7, 7, lag=0))  # what the source has is not known
    watched = watcher(readings, None, clock)
    watched.read()
    clock.sleep(5)
    readings.now = at(1, 7, 6, lag=28_800)
    assert lags_of(watched.read()) == (28_800, 28_800)


def test_target_that_was_taken_back_has_the_lag_of_its_event() -> None:
    clock, readings = Slept(), Readings(at(0, 7, 7, lag=0))
    watched = watcher(readings, None, clock)
    watched.read()
    clock.sleep(5)
    readings.now = at(0, 7, 3, lag=7200)
    assert lags_of(watched.read()) == (0, 7200)
    clock.sleep(5)
    readings.now = at(0, 7, 4, lag=7000)
    assert lags_of(watched.read()) == (0, 7000)


def test_lag_of_a_slow_reading_counts_from_its_beginning() -> None:
    clock = Slept()

    class Slow(Readings):
        def __call__(self, *args: Any, **options: Any) -> Observation:
            clock.sleep(30)
            return super().__call__(*args, **options)

    readings = Slow(at(0, 7, 7, lag=0))
    watched = watcher(readings, None, clock)
    watched.read()
    readings.now = at(1, 7, 7, lag=28_800)
    assert lags_of(watched.read())[0] == 30


def test_lag_of_a_source_that_writes_all_the_time_is_bounded_by_the_last_end_that_the_log_has_passed() -> None:
    clock = Slept()
    readings = Readings()
    watched = watcher(readings, None, clock)

    def lag(end: int, resume: int, age: float) -> float | None:
        """Without GTIDs, captured tables are idle and others are written to."""
        source = SourceView(SourcePosition("b.000003", end), None, True, ("b.000003",), 0)
        position = replace(POSITION, resume=SourcePosition("b.000003", resume))
        producer = replace(PRODUCER, state=ServiceState.BEHIND, events_behind=None, seconds_behind=age)
        readings.now = replace(observation(producer), source=source, position=position)
        return watched.read().producer.seconds_behind

    assert lag(1000, 500, 7200) == 7200  # nothing is known yet
    clock.sleep(10)
    assert lag(2000, 1000, 7210) == 10
    clock.sleep(10)
    assert lag(3000, 1500, 7220) == 20
    clock.sleep(10)
    assert lag(4000, 3000, 7230) == 10


def test_targets_are_read_at_once() -> None:
    both = Barrier(2, timeout=PATIENCE)

    class Meeting(Readings):
        def __call__(self, config: Config, *given: Any, **named: Any) -> Observation:
            both.wait()
            return super().__call__(config, *given, **named)

    found = watcher(Meeting(), None, None, config(target="a"), config(target="b")).read()
    assert list(found.targets) == ["a", "b"]
