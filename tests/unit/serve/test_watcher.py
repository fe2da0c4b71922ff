"""The watcher: problems with times and remedies, several targets, and readings that are too old."""

from __future__ import annotations

from dataclasses import replace

from connector.config.serve import Serve
from connector.serve.objects import Health, health_of
from connector.status.report import End, ServiceState
from tests.support.clock import Slept
from tests.support.serving import APPLIER, PRODUCER, Readings, config, observation, troubled, watcher


def test_first_target_is_read_with_the_source_and_others_alone() -> None:
    readings = Readings()
    found = watcher(readings, None, None, config(target="a"), config(target="b")).read()
    assert readings.asked == [frozenset(End), frozenset({End.TARGET})]
    assert list(found.targets) == ["a", "b"]


def test_problem_keeps_its_begin_and_is_shown_when_it_is_over() -> None:
    clock, readings = Slept(), Readings(troubled())
    watched = watcher(readings, None, clock)
    began = watched.read().at
    clock.sleep(60)
    readings.now = observation(replace(PRODUCER, events_behind=99, seconds_behind=190.0))
    watched.read()
    by_text = {incident.text: incident for incident in watched.incidents}
    behind = by_text["the producer is 190 s behind (99 events)"]
    assert (behind.present, behind.since) == (True, began)
    assert behind.remedy.startswith("thl info --source")
    source = by_text["the source does not answer [host=mysql.example]"]
    assert (source.present, source.last, source.remedy) == (False, began, "start MySQL, or correct source.host")


def test_health_follows_the_reading_and_its_age() -> None:
    clock, readings = Slept(), Readings()
    watched = watcher(readings, Serve(interval=5), clock)
    assert health_of(watched) is Health.UNKNOWN
    watched.read()
    assert health_of(watched) is Health.OK
    readings.now = observation(applier=replace(APPLIER, excluded_tables=("shop.t since 4",)))
    watched.read()
    assert health_of(watched) is Health.WARNING
    readings.now = observation(applier=replace(APPLIER, state=ServiceState.OFFLINE))
    watched.read()
    assert health_of(watched) is Health.DOWN
    clock.sleep(76)
    assert health_of(watched) is Health.UNKNOWN


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
