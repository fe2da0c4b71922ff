"""The history: a point a minute, bounded, and kept in a file."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from threading import Event
from typing import NoReturn

import pytest

from connector.clock import SystemClock
from connector.config.serve import Serve
from connector.errors import ConfigError
from connector.serve import server
from connector.serve import watcher as watcher_module
from connector.serve.charts import lag_chart
from connector.serve.history import PRODUCER, Comparison, LagHistory, Point, target_key
from connector.serve.history_file import HistoryFile, history_file
from connector.serve.server import serve, watched
from connector.serve.watcher import Watcher
from tests.support.clock import Slept
from tests.support.producing import until
from tests.support.serving import Readings, application, ask, config, free_port, service, serving

NOW = 1_760_000_000.0


def started(path: Path, clock: Slept | None = None, *names: str) -> list[Watcher]:
    """The watchers of a server that begins with a history's file."""
    services, settings = [service(config(name)) for name in names or ("shop",)], Serve(history=path)
    return watched(services, settings, clock or Slept(NOW), history_file(services, settings))


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
    file = history_file([service()], settings)
    (before,) = watched([service()], settings, clock, file)
    now = clock.now() / 1e6 // 60 * 60
    for minute in range(3):
        before.history.add(now + minute * 60, {PRODUCER: float(minute)}, {PRODUCER: minute})
    assert file is not None
    file.append("comparison", "shop", Comparison(now, "target", "different").as_object())
    with settings.history.open("a") as torn:  # type: ignore[union-attr]
        torn.write('{"kind": "point", "service": "shop", "val')
    clock.sleep(180)
    (after,) = watched([service()], settings, clock, file)
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
    assert [value["at"] for _, _, value in file.read(0, NOW)] == [360]
    assert (tmp_path / "history").stat().st_mode & 0o077 == 0


def test_history_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        started(tmp_path / "none" / "history")
    assert "serve.history" in raised.value.fields


def test_chart_leaves_out_what_was_unknown_and_says_what_it_shows() -> None:
    points = [Point(minute * 60, {PRODUCER: 5.0}) for minute in (0, 1, 2, 30, 31)]
    points.append(Point(59 * 60, {PRODUCER: 42.0}))
    chart = lag_chart(points, PRODUCER, 0, 3600)
    assert chart.svg.count("<polyline") == 3
    assert chart.summary == "last 1 h: at most 42 s, at the end 42 s"
    assert not lag_chart(points, "target:a", 0, 3600).known


@pytest.mark.parametrize(("minute", "end"), [(59, "5 s"), (58, "5 s"), (57, "unknown"), (3, "unknown")])
def test_chart_says_that_the_lag_is_not_known_any_more(minute: int, end: str) -> None:
    chart = lag_chart([Point(minute * 60, {PRODUCER: 5.0})], PRODUCER, 0, 3600)
    assert chart.summary == f"last 1 h: at most 5 s, at the end {end}"


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "comparison", "service": "shop", "value": {"x": 1}}',
        '{"kind": "comparison", "service": "shop", "value": {"at": 1e300, "target": "target", "verdict": "equal"}}',
        '{"kind": "point", "service": "shop", "value": {"at": 1e999, "lag": {}, "seqno": {}}}',
        '{"kind": "point", "service": "shop", "value": {"at": 1759999980, "lag": {"producer": NaN}, "seqno": {}}}',
        '{"kind": "point", "service": "shop", "value": {"at": 1759999980, "lag": {"producer": -5}, "seqno": {}}}',
        '{"kind": "point", "service": "shop", "value": {"at": 1759999980, "lag": {}, "seqno": {"x": 1e999}}}',
        '{"kind": ' + "[" * 200_000,
        '{"kind": "point"} \x00',
    ],
)
def test_damaged_line_is_left_out(line: str, tmp_path: Path) -> None:
    file, clock = tmp_path / "history", Slept(NOW)
    good = '{"kind": "point", "service": "shop", "value": {"at": 1759999920, "lag": {"producer": 5}, "seqno": {}}}'
    file.write_text(f"{line}\n{good}\n{line}\n")
    (found,) = started(file, clock)
    assert [point.lag for point in found.history.points()] == [{PRODUCER: 5.0}]
    client = application([found], Serve(), clock).test_client()
    for path in ("/services/shop", "/api/services/shop", "/api/services/shop/history"):
        assert client.get(path).status_code == 200
    assert line not in file.read_text()


def test_points_of_the_future_of_the_past_and_of_other_services_are_dropped(tmp_path: Path) -> None:
    lines = [
        {"kind": "point", "service": service, "value": Point(int(NOW + hours * 3600)).as_object()}
        for service, hours in (("shop", 1), ("shop", -23), ("shop", -25), ("crm", -1))
    ]
    (tmp_path / "history").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (found,) = started(tmp_path / "history")
    assert [point.at for point in found.history.points()] == [NOW - 23 * 3600]
    assert len((tmp_path / "history").read_text().splitlines()) == 1


def test_file_is_full_with_twice_the_points_of_all_services(tmp_path: Path) -> None:
    settings = Serve(history=tmp_path / "history", history_hours=0.1)
    file = history_file([service(), service(config("crm"))], settings)
    assert file is not None
    for _ in range(2 * 2 * 6):
        file.append("point", "shop", {})
    assert not file.full
    file.append("point", "shop", {})
    assert file.full


def test_line_after_one_that_was_cut_off_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "history"
    file = HistoryFile(path, 10)
    points = [Point(60), Point(120), Point(180)]
    for point in points:
        file.append("point", "shop", point.as_object())
        if point.at == 120:
            os.truncate(path, path.stat().st_size - 5)
    assert [Point.parse(value).at for _, _, value in file.read(0, NOW)] == [60, 180]


def test_history_goes_on_after_the_clock_went_back() -> None:
    history = LagHistory("shop", 1)
    history.add(3_600_000, {PRODUCER: 1.0}, {})
    history.add(7_200_000, {PRODUCER: 2.0}, {})
    for minute in (1, 2):
        history.add(3_600_000 + minute * 60, {PRODUCER: 3.0}, {})
    assert [point.at for point in history.points()] == [3_600_000, 3_600_060, 3_600_120]


@pytest.mark.parametrize("kind", ["other file", "folder", "pipe", "link", "device"])
def test_what_is_no_history_is_refused_and_stays_as_it_is(kind: str, tmp_path: Path) -> None:
    path, text = tmp_path / "thl.yaml", "service: shop\n"
    match kind:
        case "other file":
            path.write_text(text)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            (tmp_path / "linked").write_text("")
            path.symlink_to("linked")
        case "device":
            path.symlink_to("/dev/null")
    before = path.lstat()
    with pytest.raises(ConfigError, match="history cannot be used"):
        started(path)
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert kind != "other file" or path.read_text() == text


def test_second_server_with_the_same_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (Readings(),))
    history, stop = tmp_path / "history", Event()
    stop.set()
    with serving(service(), settings=Serve(port=free_port(), history=history)):
        with pytest.raises(ConfigError, match="another thl serve uses it"):
            serve([service(config("crm"))], Serve(port=free_port(), history=history), SystemClock(), stop)
        assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


def test_full_disk_ends_neither_the_server_nor_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (Readings(),))
    monkeypatch.setattr(server, "LOOK", 0.02)
    monkeypatch.setattr(HistoryFile, "full", True)
    asked: list[Path] = []

    def full(path: Path) -> NoReturn:
        asked.append(path)
        raise OSError(errno.ENOSPC, "No space left on device")

    history = tmp_path / "history"
    with serving(service(), settings=Serve(port=free_port(), history=history)) as port:
        monkeypatch.setattr("connector.serve.history_file.open_new", full)
        until(lambda: len(asked) > 2)
        assert ask(port, "/healthz").status == 200
        assert history.exists()
