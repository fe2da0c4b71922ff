"""When a target will have caught up, by what was seen of it and of the log."""

from __future__ import annotations

import pytest

from connector.status.catch_up import CatchUp, Estimate, Sample


def estimate_of(*samples: tuple[float, int, int], window: float = 60.0) -> Estimate | None:
    catch_up = CatchUp(window)
    for at, applied, newest in samples:
        catch_up.seen(Sample(at, applied, newest))
    return catch_up.estimate()


def seconds_of(*samples: tuple[float, int, int], window: float = 60.0) -> float | None:
    found = estimate_of(*samples, window=window)
    assert found is not None
    return found.seconds


def test_nothing_is_known_before_the_first_sample() -> None:
    assert estimate_of() is None


def test_one_sample_tells_how_far_but_not_how_long() -> None:
    found = estimate_of((0.0, 100, 1100))
    assert found == Estimate(behind=1000, applied=0.0, published=0.0)
    assert found.seconds is None


def test_what_closes_is_what_is_applied_less_what_is_added_meanwhile() -> None:
    # 300 a second are applied, 100 a second are added: of 1,800 that are left, 200 a second.
    assert seconds_of((0.0, 0, 3800), (10.0, 3000, 4800)) == pytest.approx(1800 / 200)


def test_a_log_that_grows_no_more() -> None:
    assert seconds_of((0.0, 0, 1000), (1.0, 100, 1000)) == pytest.approx(9.0)


@pytest.mark.parametrize("newest", [6000, 9000])
def test_a_log_that_grows_as_fast_or_faster_is_never_caught_up_with(newest: int) -> None:
    assert seconds_of((0.0, 0, 5000), (10.0, 1000, newest)) is None


def test_a_target_that_stands_still_does_not_catch_up() -> None:
    assert seconds_of((0.0, 5, 50), (10.0, 5, 50)) is None


def test_a_target_with_everything_has_caught_up() -> None:
    assert seconds_of((0.0, 5, 9), (1.0, 9, 9)) == 0.0


def test_what_is_in_flight_at_any_time_is_not_to_be_caught_up_with() -> None:
    # As fast as the log, a tenth of a second behind it.
    assert seconds_of((0.0, 0, 200), (1.0, 2000, 2200)) == pytest.approx(0.1)


def test_a_target_may_be_ahead_of_what_was_read_of_the_log() -> None:
    assert estimate_of((0.0, 0, 10), (1.0, 20, 10)) == Estimate(behind=0, applied=20.0, published=0.0)


def test_only_the_window_counts() -> None:
    # At first slow, then 100 a second.
    samples = [(0.0, 0, 10_000), (100.0, 1, 10_000), (101.0, 101, 10_000), (105.0, 501, 10_000)]
    assert seconds_of(*samples, window=5.0) == pytest.approx((10_000 - 501) / 100)


def test_a_target_that_went_back_is_another_one() -> None:
    found = estimate_of((0.0, 0, 1000), (1.0, 500, 1000), (2.0, 100, 1000), (3.0, 110, 1000))
    assert found == Estimate(behind=890, applied=10.0, published=0.0)
