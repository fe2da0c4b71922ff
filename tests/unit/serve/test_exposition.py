"""The readings as metrics: every declared one, with names and labels as documented."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from connector import metrics
from connector.config.serve import Serve
from connector.log.epochs.load_pause import LoadPause, PauseCause
from connector.serve.exposition import exposed, registry_of
from connector.serve.history import Comparison
from connector.status.report import ServiceState
from tests.support.clock import Slept
from tests.support.serving import APPLIER, PRODUCER, ROW, Readings, observation, troubled, watcher

READ = {f"thl_service_read_{name}" for name in ("seconds", "took_seconds", "age_seconds", "stale")}
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(readings: Readings, *, compared: bool = False, old: float = 0.0) -> Samples:
    clock = Slept(1_760_000_000.0)
    watched = watcher(readings, Serve(), clock)
    watched.read()
    if compared:
        watched.comparisons["target"] = Comparison(clock.seconds, "target", "different")
    clock.sleep(old)
    text = exposed(registry_of([watched])).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("thl_")
    }


def of(found: Samples, name: str, **labels: str) -> float:
    return found[name, tuple(sorted({"service": "shop", **labels}.items()))]


def test_every_declared_metric_has_its_labels() -> None:
    whole = observation(
        replace(PRODUCER, semi_sync="ON", load_pause=LoadPause(PauseCause.PURGE, "soon")),
        replace(APPLIER, channels=(1, 2)),
    )
    found = samples(Readings(whole), compared=True)
    declared = {one.name: set(one.labels) for one in metrics.DECLARED if one.command.endswith("thl serve")}
    assert {name: {label for label, _ in labels} for name, labels in found} == declared


def test_running_service_is_up_and_has_no_lag() -> None:
    found = samples(Readings())
    assert of(found, "thl_service_producer_up") == of(found, "thl_service_applier_up", target="target") == 1
    assert of(found, "thl_service_producer_lag_seconds") == 0
    assert of(found, "thl_service_producer_state", state="ONLINE") == 1
    assert of(found, "thl_service_producer_state", state="OFFLINE") == 0
    assert of(found, "thl_service_trapped_events") == 2


def test_service_in_trouble_is_down_and_has_its_numbers() -> None:
    found = samples(Readings(troubled()))
    assert of(found, "thl_service_applier_up", target="target") == 0
    assert of(found, "thl_service_applier_lag_seconds", target="target") == 700
    assert of(found, "thl_service_seconds_until_purge") == 1800
    assert of(found, "thl_service_inconsistent_because", target="target", cause="quarantine") == 1
    assert of(found, "thl_service_inconsistent_because", target="target", cause="load") == 0
    assert of(found, "thl_service_tables", target="target", state="excluded") == 1
    assert of(found, "thl_service_load_paused", cause="replica_lag") == 1
    assert of(found, "thl_service_channel_seqno", target="target", channel="1") == 4001


def test_unknown_is_neither_up_nor_down() -> None:
    away = observation(replace(PRODUCER, state=ServiceState.UNKNOWN, seconds_until_purge=None))
    found = samples(Readings(away))
    assert math.isnan(of(found, "thl_service_producer_up"))
    assert of(found, "thl_service_seconds_until_purge") == math.inf
    sqlite = observation(row=replace(ROW, applier=None))
    assert math.isnan(of(samples(Readings(sqlite)), "thl_service_applier_up", target="target"))


@pytest.mark.parametrize(("old", "stale"), [(0, False), (74, False), (76, True)])
def test_old_reading_exposes_nothing_but_its_age(old: float, stale: bool) -> None:
    found = samples(Readings(), old=old)
    names = {name for name, _ in found} - {"thl_build_info"}
    assert (names == READ) is stale
    assert of(found, "thl_service_read_seconds") == 1_760_000_000
    assert of(found, "thl_service_read_age_seconds") == old
    assert of(found, "thl_service_read_stale") == stale


@pytest.mark.parametrize(("old", "stale"), [(74, 0), (76, 1)])
def test_service_that_was_never_read_has_an_age(old: float, stale: float) -> None:
    clock = Slept(1_760_000_000.0)
    watched = watcher(Readings(), Serve(), clock)
    clock.sleep(old)
    text = exposed(registry_of([watched])).decode()
    assert f'thl_service_read_age_seconds{{service="shop"}} {old}.0\n' in text
    assert f'thl_service_read_stale{{service="shop"}} {stale}.0\n' in text
    assert "thl_service_producer_up" not in text


def test_service_without_a_log_has_no_seqno() -> None:
    empty = observation(replace(PRODUCER, state=ServiceState.NONE, log_id=""), row=None)
    found = samples(Readings(empty))
    names = {name for name, _ in found}
    assert "thl_service_published_seqno" not in names
    assert "thl_service_applied_seqno" not in names
    assert of(found, "thl_service_producer_up") == 0


def test_purge_that_is_due_is_zero_seconds_away() -> None:
    found = samples(Readings(observation(replace(PRODUCER, seconds_until_purge=-5.0))))
    assert of(found, "thl_service_seconds_until_purge") == 0


def test_times_are_seconds() -> None:
    watched = watcher(Readings(), Serve(), Slept(1_760_000_000.0))
    reading = replace(watched.read(), prepared_since=1_759_000_000_000_000)
    watched._newest = reading
    text = exposed(registry_of([watched])).decode()
    assert 'thl_service_prepared_since_seconds{service="shop"} 1.759e+09\n' in text


@pytest.mark.parametrize(("verdict", "different"), [("different", 1), ("equal", 0), ("not all compared", 0)])
def test_comparison_that_found_no_difference_is_none(verdict: str, different: float) -> None:
    watched = watcher(Readings(), Serve(), Slept(1_760_000_000.0))
    watched.read()
    watched.compared(Comparison(1_759_000_000.0, "target", verdict))
    text = exposed(registry_of([watched])).decode()
    assert f'thl_service_compared_different{{service="shop",target="target"}} {different}.0\n' in text


@pytest.mark.parametrize(("semi_sync", "on"), [("ON", 1), ("OFF", 0)])
def test_semi_sync_is_on_or_off(semi_sync: str, on: float) -> None:
    found = samples(Readings(observation(replace(PRODUCER, semi_sync=semi_sync))))
    assert of(found, "thl_service_semi_sync_on") == on


def test_load_waits_for_one_cause() -> None:
    paused = observation(replace(PRODUCER, load_pause=LoadPause(PauseCause.PURGE, "soon")))
    found = samples(Readings(paused))
    assert {cause for cause in PauseCause if of(found, "thl_service_load_paused", cause=cause)} == {PauseCause.PURGE}


def test_rate_is_that_of_the_applier() -> None:
    clock, readings = Slept(1_760_000_000.0), Readings()
    watched = watcher(readings, Serve(), clock)
    for applied in (1000, 1200):
        readings.now = observation(applier=replace(APPLIER, applied_last_seqno=applied, events_behind=5000 - applied))
        watched.read()
        clock.sleep(10)
    text = exposed(registry_of([watched])).decode()
    labels = 'service="shop",target="target"'
    assert f"thl_service_applied_events_per_second{{{labels}}} 20.0\n" in text
    assert f"thl_service_catch_up_seconds{{{labels}}} 190.0\n" in text
