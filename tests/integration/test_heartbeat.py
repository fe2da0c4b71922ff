"""Heartbeats on a real source are events that know their names."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from connector.cli import run as thl
from connector.sandbox.environment import Broker, SqlServer
from tests.integration.producing import Bench, finished, fragments, until


def names(bench: Bench) -> list[str]:
    events = finished(fragments(bench.config))
    return [event[0]["metadata"]["heartbeat"] for event in events if "heartbeat" in event[0]["metadata"]]


def test_heartbeats_are_written_and_known_again(
    mysql_server: SqlServer,
    kafka_broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path)
    bench.make_table()
    uuid = bench.sql("SELECT @@server_uuid").splitlines()[1]
    with sqlite3.connect(tmp_path / "t.db") as target:
        target.execute(
            "CREATE TABLE thl_position (service, log_id, seqno, epoch, event_id, gtid_set, consistent, commit_time, "
            "applied_at, token)"
        )
        position = (bench.service, f"{uuid}:1-1000000")
        target.execute("INSERT INTO thl_position VALUES (?, 'a', 40, 2, 'b:9;0', ?, 1, 0, 0, 1)", position)
    bench.settings = {
        "THL_SOURCE__HEARTBEAT_TABLE": f"{bench.service}.beat",
        "THL_SOURCE__HEARTBEAT_INTERVAL": "0.5",
        "THL_TARGET__URL": f"sqlite:///{tmp_path}/t.db",
    }
    for name, value in bench.environment.items():
        monkeypatch.setenv(name, value)

    with bench.start() as first:
        first.loaded()
        assert thl(["heartbeat", "50 % mine", "--wait"]) == 0  # what the target says here is made up
        assert "applied 40 (b:9;0)" in capsys.readouterr().err
        until(lambda: {"50 % mine", "interval"} <= set(names(bench)))
        assert first.stop() == 0
    assert "online" not in names(bench)  # it came before the initial load
    with bench.start() as second:
        until(lambda: "online" in names(bench))
        assert second.stop() == 0

    found = bench.sql(f"SELECT service, name FROM {bench.service}.beat ORDER BY name").splitlines()[1:]
    assert found == [f"{bench.service}\t{name}" for name in ("50 % mine", "interval", "online")]
    monkeypatch.setenv("THL_SOURCE__HEARTBEAT_TABLE", "other.beat")
    assert thl(["heartbeat"]) == 2
    assert "source.filters leave out the heartbeat table" in capsys.readouterr().err
