"""Heartbeats written on a real source are published as events with their names."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from connector.cli import run as thl
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.errors import TimedOut
from connector.log.compact.net_changes import Ddl
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.mysql.server.heartbeat_table import COLUMNS
from connector.status.heartbeat import heartbeat_time
from connector.targets.open import open_target
from tests.support.producing import Bench, finished, fragments, until
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer


def names(bench: Bench) -> list[str]:
    events = finished(fragments(bench.config))
    return [event[0]["metadata"]["heartbeat"] for event in events if "heartbeat" in event[0]["metadata"]]


def test_written_heartbeats_are_recognised(
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
        executed = bench.sql("SELECT @@gtid_executed").splitlines()[1].replace("\\n", "")
        assert thl(["wait", "--producer", "--to-gtid", executed, "--timeout", "60"]) == 0
        assert capsys.readouterr().err.startswith("written ")
        assert thl(["wait", "--producer", "--to-seqno", "1000000", "--timeout", "0"]) == TimedOut.exit_code
        assert thl(["wait", "--producer", "--to-seqno", "0", "--timeout", "0", "--set", "service=none"]) != 0
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
    assert "source.filters.do" in capsys.readouterr().err


@pytest.fixture(params=["sqlite", "postgresql"])
def target_url(request: pytest.FixtureRequest, postgres_server: DatabaseServer, tmp_path: Path) -> Iterator[str]:
    """An empty target."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/target.db"
        return
    name = f"beat_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield postgres_server.dsn.rpartition("/")[0] + f"/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_the_newest_heartbeat_that_a_target_has_is_read_from_its_own_table(target_url: str) -> None:
    table, options = TableName("Ops" + "x" * 57, "Beat"), Target(url=SecretStr(target_url))
    assert target_url.startswith("sqlite") or heartbeat_time(target_url, "shop", table, "mine") is None
    target = open_target(options, SystemClock())
    position = replace(target.claim("shop"), log_id=LogId("0" * 32), epoch=Epoch(1), seqno=Seqno(0))
    assert heartbeat_time(target_url, "shop", table, "mine") is None
    made = Statement(table.schema, f"CREATE TABLE {table.table} ({COLUMNS})", {})
    target.ddl(Ddl(seqno=Seqno(0), statements=[made], commit_time=1))
    target.commit(position, [])
    assert heartbeat_time(target_url, "shop", table, "mine") is None
    for service, name, moment in (
        ("other", "mine", "2027-01-01 00:00:00.000000"),
        ("shop", "mine", "2026-11-22 06:30:00.000500"),
        ("shop", "old", "1999-12-31 00:00:00.000000"),
    ):
        insert(target_url, table, service, name, moment)
    spelled = TableName(table.schema.lower(), "BEAT")
    assert heartbeat_time(target_url, "shop", spelled, "mine") == 1_795_329_000_000_500
    assert heartbeat_time(target_url, "shop", spelled, "old") == 946_598_400_000_000
    assert heartbeat_time(target_url, "shop", spelled, "none") is None
    assert heartbeat_time(target_url, "other", spelled, "mine") is None
    target.close()


def insert(url: str, table: TableName, *values: str) -> None:
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            file.execute(f'INSERT INTO "{table}" VALUES (?, ?, ?)', values)
        return
    with psycopg.connect(url) as connection:
        connection.execute(f'INSERT INTO "{table.schema}"."{table.table}" VALUES (%s, %s, %s)'.encode(), values)
