"""The history: a point a minute, bounded, and kept in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.config.serve import Serve
from connector.errors import ConfigError
from connector.serve.charts import lag_chart
from connector.serve.history import PRODUCER, HistoryFile, LagHistory, Point, target_key
from connector.serve.server import watched
from connector.serve.watcher import Comparison
from tests.support.clock import Slept
from tests.support.serving import service


def test_minute_keeps_its_largest_lag_and_its_last_seqno() -> None:
    history = LagHistory("shop", 1)
    history.add(120, {PRODUCER: 3.0, "target:a": None}, {PRODUCER: 4})
    history.add(179, {PRODUCER: 1.0, "target:a": 7.0}, {PRODUCER: 6})
    history.add(180, {PRODUCER: 0.0}, {})
    assert history.points() == [
        Point(120, {PRODUCER: 3.0, "target:a": 7.0}, {PRODUCER: 6}),
        Point(180, {PRODUCER: 0.0}, {}),
    ]


def test_points_beyond_the_configured_hours_are_dropped() -> None:
    history = LagHistory("shop", 0.5)
    for minute in range(100):
        history.add(minute * 60, {PRODUCER: 1.0}, {})
    assert [point.at for point in history.points()] == [minute * 60 for minute in range(70, 100)]
    assert [point.at for point in history.points(since=98 * 60)] == [98 * 60, 99 * 60]


def test_target_named_producer_is_another_than_the_producer() -> None:
    assert target_key("producer") != PRODUCER


def test_history_survives_a_restart(tmp_path: Path) -> None:
    clock, settings = Slept(1_760_000_000.0), Serve(history=tmp_path / "history", history_hours=2)
    (before,), file = watched([service()], settings, clock)
    now = clock.now() / 1e6 // 60 * 60
    for minute in range(3):
        before.history.add(now + minute * 60, {PRODUCER: float(minute)}, {PRODUCER: minute})
    assert file is not None
    file.append("comparison", "shop", Comparison(now, "target", "different").as_object())
    with settings.history.open("a") as torn:  # type: ignore[union-attr]
        torn.write('{"kind": "point", "service": "shop", "val')
    (after,), _ = watched([service()], settings, clock)
    # The minute that was not over is lost.
    assert [(point.at, point.lag) for point in after.history.points()] == [
        (now, {PRODUCER: 0.0}),
        (now + 60, {PRODUCER: 1.0}),
    ]
    assert after.comparisons["target"].verdict == "different"


def test_file_is_rewritten_before_it_grows_beyond_its_bound(tmp_path: Path) -> None:
    file = HistoryFile(tmp_path / "history", most=5)
    for number in range(7):
        assert file.full is (number > 5)
        file.append("point", "shop", Point(number * 60).as_object())
    file.rewrite(lambda: [("point", "shop", Point(360).as_object())])
    assert not file.full
    assert [value["at"] for _, _, value in file.read(0)] == [360]
    assert (tmp_path / "history").stat().st_mode & 0o077 == 0


def test_history_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        watched([service()], Serve(history=tmp_path / "none" / "history"), Slept())
    assert "serve.history" in raised.value.fields


def test_chart_leaves_out_what_was_unknown_and_says_what_it_shows() -> None:
    points = [Point(minute * 60, {PRODUCER: 5.0}) for minute in (0, 1, 2, 30, 31)]
    points.append(Point(59 * 60, {PRODUCER: 42.0}))
    chart = lag_chart(points, PRODUCER, 0, 3600)
    assert chart.svg.count("<polyline") == 3
    assert chart.summary == "last 1 h: at most 42 s, at the end 42 s"
    assert not lag_chart(points, "target:a", 0, 3600).known
