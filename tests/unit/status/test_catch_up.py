"""Estimates of the time until a target has caught up."""

from __future__ import annotations

import pytest

from connector.status.catch_up import CatchUp, Estimate, Sample


def estimate_of(*samples: tuple[float, int, int], window: float = 60.0) -> Estimate | None:
    catch_up = CatchUp(window)
    for at, applied, newest in samples:
        catch_up.add(Sample(at, applied, newest))
    return catch_up.estimate()


def seconds_of(*samples: tuple[float, int, int], window: float = 60.0) -> float | None:
    found = estimate_of(*samples, window=window)
    assert found is not None
    return found.seconds


def test_no_sample_gives_no_estimate() -> None:
    assert estimate_of() is None


def test_one_sample_gives_lag_without_time() -> None:
    found = estimate_of((0.0, 100, 1100))
    assert found == Estimate(lag=1000, applied=0.0, published=0.0)
    assert found.seconds is None


def test_lag_shrinks_by_applied_less_published() -> None:
    # 300 per second are applied and 100 published: a lag of 1,800 shrinks by 200 per second.
    assert seconds_of((0.0, 0, 3800), (10.0, 3000, 4800)) == pytest.approx(1800 / 200)


def test_log_at_rest_is_caught_up_at_applied_rate() -> None:
    assert seconds_of((0.0, 0, 1000), (1.0, 100, 1000)) == pytest.approx(9.0)


@pytest.mark.parametrize("newest", [6000, 9000])
def test_log_growing_as_fast_is_never_caught_up(newest: int) -> None:
    assert seconds_of((0.0, 0, 5000), (10.0, 1000, newest)) is None


def test_target_without_progress_never_catches_up() -> None:
    assert seconds_of((0.0, 5, 50), (10.0, 5, 50)) is None


def test_target_without_lag_has_caught_up() -> None:
    assert seconds_of((0.0, 5, 9), (1.0, 9, 9)) == 0.0


def test_events_in_flight_are_no_backlog() -> None:
    # As fast as the log, a tenth of a second behind it.
    assert seconds_of((0.0, 0, 200), (1.0, 2000, 2200)) == pytest.approx(0.1)


def test_target_ahead_of_read_log_has_no_lag() -> None:
    assert estimate_of((0.0, 0, 10), (1.0, 20, 10)) == Estimate(lag=0, applied=20.0, published=0.0)


def test_samples_before_window_are_forgotten() -> None:
    # At first slow, then 100 a second.
    samples = [(0.0, 0, 10_000), (100.0, 1, 10_000), (101.0, 101, 10_000), (105.0, 501, 10_000)]
    assert seconds_of(*samples, window=5.0) == pytest.approx((10_000 - 501) / 100)


def test_target_that_went_back_forgets_samples() -> None:
    found = estimate_of((0.0, 0, 1000), (1.0, 500, 1000), (2.0, 100, 1000), (3.0, 110, 1000))
    assert found == Estimate(lag=890, applied=10.0, published=0.0)
