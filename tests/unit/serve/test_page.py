"""What the page and the API show of a reading: tones, epochs, durations and numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from connector.serve.charts import short
from connector.serve.objects import service_object
from connector.serve.page import duration, number, tone, when
from connector.status.report import ServiceState
from tests.support.serving import APPLIER, PRODUCER, Readings, an_epoch, control, observation, watcher


@pytest.mark.parametrize(
    ("state", "behind", "expected"),
    [
        (ServiceState.ONLINE, 0.0, "good"),
        (ServiceState.BEHIND, 60.0, "good"),
        (ServiceState.BEHIND, 61.0, "attention"),
        (ServiceState.ONLINE, None, "good"),
        (ServiceState.LOADING, 0.0, "attention"),
        (ServiceState.STOPPING, 0.0, "attention"),
        (ServiceState.UNKNOWN, None, "attention"),
        (ServiceState.OFFLINE, 0.0, "bad"),
        (ServiceState.NONE, None, "bad"),
    ],
)
def test_tone_follows_state_and_lag(state: ServiceState, behind: float | None, expected: str) -> None:
    assert tone(replace(PRODUCER, state=state, seconds_behind=behind), 60.0) == expected
    assert tone(replace(APPLIER, state=state, seconds_behind=behind), 60.0) == expected


def test_newest_ten_epochs_are_shown() -> None:
    state = replace(control(), epochs=tuple(an_epoch(number) for number in range(1, 13)))
    watched = watcher(Readings(observation(state=state)))
    watched.read()
    assert [one["epoch"] for one in service_object(watched)["log"]["epochs"]] == list(range(12, 2, -1))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (5400, "1.5 h"),
        (172_800, "2 d"),
        (None, "unknown"),
        (math.nan, "unknown"),
        (math.inf, "unknown"),
    ],
)
def test_durations_have_a_unit(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_numbers_and_times_are_for_people() -> None:
    assert [number(value) for value in (None, 4711, 0.26)] == ["unknown", "4,711", "0.3"]
    assert short(86_400 * 31) == "31 d"
    assert when(1_760_000_000) == "2025-10-09 08:53:20 UTC"
