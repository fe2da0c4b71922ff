"""When the log's end is near enough for every message to be read by itself."""

from __future__ import annotations

import pytest

from connector.spark.stream.load_monitor import (
    FEW,
    MOST_WINDOWS,
    QUIET_BYTES,
    QUIET_MESSAGES,
    REFUSED_WINDOWS,
    WINDOWS,
    LoadMonitor,
)


class Watch:
    """A calm that is told of a second at a time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calm = LoadMonitor(self.now)

    def seconds(self, count: int, messages: int = 0, size: int = 0, *, full: bool = False) -> bool:
        for _ in range(count):
            self.calm.seen(self.now + 0.4, messages // 2, size // 2, full=full)
            self.now += 1.0
            self.calm.seen(self.now, messages - messages // 2, size - size // 2)
        return self.calm.calm


def test_quiet_has_to_last() -> None:
    watch = Watch()
    assert not watch.seconds(WINDOWS - 1, messages=100)
    assert watch.seconds(1, messages=100)


@pytest.mark.parametrize(
    "much",
    [
        {"messages": QUIET_MESSAGES + 1},
        {"messages": 10, "size": QUIET_BYTES + 2},
        {"messages": 10, "full": True},
    ],
)
def test_much_is_never_quiet(much: dict[str, int]) -> None:
    assert not Watch().seconds(100, **much)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "loud",
    [{"messages": 2 * QUIET_MESSAGES + 1}, {"messages": 10, "size": 2 * QUIET_BYTES + 2}],
)
def test_what_is_loud_ends_it_at_once_and_what_is_between_does_not(loud: dict[str, int]) -> None:
    watch = Watch()
    assert watch.seconds(WINDOWS)
    assert watch.seconds(20, messages=QUIET_MESSAGES + 100, size=QUIET_BYTES + 100)
    assert not watch.seconds(1, **loud)  # type: ignore[arg-type]


def test_quiet_has_to_last_longer_after_each_time_that_it_did_not() -> None:
    watch = Watch()
    waited = []
    for _ in range(8):
        seconds = 0
        while not watch.seconds(1, messages=10):
            seconds += 1
        waited.append(seconds + 1)
        watch.seconds(1, messages=3 * QUIET_MESSAGES)
    assert waited == [3, 6, 12, 24, 48, MOST_WINDOWS, 6, 12], "after so much quiet all is forgotten"


def test_what_is_neither_quiet_nor_loud_begins_the_quiet_anew() -> None:
    watch = Watch()
    for _ in range(10):
        assert not watch.seconds(WINDOWS - 1, messages=10)
        assert not watch.seconds(1, messages=QUIET_MESSAGES + 100)


def test_reading_that_ended_with_an_error_is_tried_again_later() -> None:
    watch = Watch()
    assert watch.seconds(WINDOWS)
    watch.calm.failed()
    assert not watch.seconds(2 * WINDOWS - 1)
    assert watch.seconds(1)


def test_who_is_behind_is_not_at_the_log_s_end() -> None:
    watch = Watch()
    assert watch.seconds(WINDOWS, messages=10)
    watch.calm.behind(FEW)
    assert watch.calm.calm
    watch.calm.behind(FEW + 1)
    assert not watch.calm.calm


def test_two_seconds_of_what_comes_are_not_behind() -> None:
    watch = Watch()
    assert watch.seconds(WINDOWS, messages=2_500)
    watch.calm.behind(4_900)
    assert watch.calm.calm
    watch.calm.behind(5_100)
    assert not watch.calm.calm


def test_what_failed_is_not_tried_again_soon() -> None:
    watch = Watch()
    assert watch.seconds(WINDOWS)
    watch.calm.refused()
    assert not watch.seconds(REFUSED_WINDOWS // 2)
    assert not watch.seconds(1, messages=3 * QUIET_MESSAGES), "loud makes it no sooner"
    assert not watch.seconds(REFUSED_WINDOWS - REFUSED_WINDOWS // 2)
    assert watch.seconds(MOST_WINDOWS)
