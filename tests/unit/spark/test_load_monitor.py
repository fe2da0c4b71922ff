"""The load and lag at which continuous mode is used."""

from __future__ import annotations

import pytest

from connector.spark.stream.load_monitor import (
    IDLE_BYTES,
    IDLE_MESSAGES,
    MOST_WINDOWS,
    REFUSED_WINDOWS,
    SMALL_LAG,
    WINDOWS,
    LoadMonitor,
)


class Watch:
    """A load monitor that counts a second at a time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.load = LoadMonitor(self.now)

    def seconds(self, count: int, messages: int = 0, size: int = 0, *, full: bool = False) -> bool:
        for _ in range(count):
            self.load.seen(self.now + 0.4, messages // 2, size // 2, full=full)
            self.now += 1.0
            self.load.seen(self.now, messages - messages // 2, size - size // 2)
        return self.load.idle


def test_idle_seconds_in_a_row_are_idle() -> None:
    watch = Watch()
    assert not watch.seconds(WINDOWS - 1, messages=100)
    assert watch.seconds(1, messages=100)


@pytest.mark.parametrize(
    "load",
    [
        {"messages": IDLE_MESSAGES + 1},
        {"messages": 10, "size": IDLE_BYTES + 2},
        {"messages": 10, "full": True},
    ],
)
def test_a_high_load_is_never_idle(load: dict[str, int]) -> None:
    assert not Watch().seconds(100, **load)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "load",
    [{"messages": 2 * IDLE_MESSAGES + 1}, {"messages": 10, "size": 2 * IDLE_BYTES + 2}],
)
def test_a_busy_second_ends_idleness_and_one_between_the_bounds_does_not(load: dict[str, int]) -> None:
    watch = Watch()
    assert watch.seconds(WINDOWS)
    assert watch.seconds(20, messages=IDLE_MESSAGES + 100, size=IDLE_BYTES + 100)
    assert not watch.seconds(1, **load)  # type: ignore[arg-type]


def test_idleness_that_ended_has_to_last_longer_the_next_time() -> None:
    watch = Watch()
    waited = []
    for _ in range(8):
        seconds = 0
        while not watch.seconds(1, messages=10):
            seconds += 1
        waited.append(seconds + 1)
        watch.seconds(1, messages=3 * IDLE_MESSAGES)
    assert waited == [3, 6, 12, 24, 48, MOST_WINDOWS, 6, 12], "after so many idle seconds it begins with a few again"


def test_a_second_between_the_bounds_restarts_the_count_of_idle_seconds() -> None:
    watch = Watch()
    for _ in range(10):
        assert not watch.seconds(WINDOWS - 1, messages=10)
        assert not watch.seconds(1, messages=IDLE_MESSAGES + 100)


def test_continuous_mode_that_failed_is_tried_again_later() -> None:
    watch = Watch()
    assert watch.seconds(WINDOWS)
    watch.load.failed()
    assert not watch.seconds(2 * WINDOWS - 1)
    assert watch.seconds(1)


def test_a_large_lag_is_busy() -> None:
    watch = Watch()
    assert watch.seconds(WINDOWS, messages=10)
    watch.load.set_lag(SMALL_LAG)
    assert watch.load.idle
    watch.load.set_lag(SMALL_LAG + 1)
    assert not watch.load.idle


def test_a_lag_of_two_seconds_of_messages_is_not_busy() -> None:
    watch = Watch()
    assert watch.seconds(WINDOWS, messages=2_500)
    watch.load.set_lag(4_900)
    assert watch.load.idle
    watch.load.set_lag(5_100)
    assert not watch.load.idle


def test_continuous_mode_that_was_refused_is_not_tried_again_soon() -> None:
    watch = Watch()
    assert watch.seconds(WINDOWS)
    watch.load.refused()
    assert not watch.seconds(REFUSED_WINDOWS // 2)
    assert not watch.seconds(1, messages=3 * IDLE_MESSAGES), "a busy second makes it no sooner"
    assert not watch.seconds(REFUSED_WINDOWS - REFUSED_WINDOWS // 2)
    assert watch.seconds(MOST_WINDOWS)
