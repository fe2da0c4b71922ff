"""Producers and commands run as users that have the rights of docker/grants and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector import cli
from tests.support.grants import granted
from tests.support.loading import a_user
from tests.support.producing import Bench, fragments, last_seqno, until
from tests.support.servers.environment import Broker, SqlServer

pytestmark = pytest.mark.servers
PRODUCTS = ("mysql", "mariadb")


@pytest.fixture(params=PRODUCTS)
def bench(request: pytest.FixtureRequest, kafka_broker: Broker, tmp_path: Path) -> Bench:
    server: SqlServer = request.getfixturevalue(f"{request.param}_server")
    made = Bench(server, kafka_broker, tmp_path)
    made.make_table()
    made.settings["product"] = request.param
    return made


def limited(bench: Bench, *names: str) -> tuple[str, ...]:
    return granted(f"{bench.settings['product']}-source.sql", *names, schema=bench.service)


def produce_as(bench: Bench, user: str, password: str) -> None:
    bench.settings |= {"THL_SOURCE__USER": user, "THL_SOURCE__PASSWORD": password}


def test_without_loads_a_log_is_written_from_now_on(bench: Bench) -> None:
    with a_user(bench.mysql, *limited(bench, "log", "tables")) as user:
        produce_as(bench, user.user, user.password.get_secret_value())
        with bench.start("--start", "now") as running:
            running.online()
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('new')")
            bench.sql(f"ALTER TABLE {bench.service}.t ADD COLUMN w INT")
            until(lambda: last_seqno(bench) >= 1)
            assert running.stop() == 0
    assert any(
        change.get("sql", "").startswith("ALTER") for one in fragments(bench.config) for change in one["changes"]
    )


def test_with_loads_tables_are_loaded_first_and_again_and_status_and_check_are_content(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_user(bench.mysql, *limited(bench, "log", "tables", "loads")) as user:
        produce_as(bench, user.user, user.password.get_secret_value())
        bench.settings["THL_SOURCE__SNAPSHOT__LOCK"] = "brief"
        bench.settings["THL_TARGET__URL"] = f"sqlite:///{bench.folder}/t.db"
        for name, value in bench.environment.items():
            monkeypatch.setenv(name, value)
        with bench.start() as running:
            running.online()
            running.loaded()
            assert cli.run(["load", f"{bench.service}.t", "--wait"]) == 0
            assert cli.run(["info", "--source"]) == 0
            cli.run(["status", "--producer"])
            assert cli.run(["trapped"]) == 0
            assert running.stop() == 0
        capsys.readouterr()
        cli.run(["check"])
        assert "has every privilege" in capsys.readouterr().out


def test_a_heartbeat_needs_its_own_rights(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.sql("DROP DATABASE IF EXISTS thl_heartbeats; CREATE DATABASE thl_heartbeats")
    bench.settings["THL_SOURCE__HEARTBEAT_TABLE"] = "thl_heartbeats.beat"
    bench.settings["THL_SOURCE__FILTERS__DO"] = f'["{bench.service}", "thl_heartbeats"]'
    with (
        a_user(bench.mysql, *limited(bench, "log", "tables")) as without,
        a_user(bench.mysql, *limited(bench, "log", "tables", "heartbeats")) as user,
    ):
        for one, code in ((without, 3), (user, 0), (user, 0)):
            produce_as(bench, one.user, one.password.get_secret_value())
            for name, value in bench.environment.items():
                monkeypatch.setenv(name, value)
            assert cli.run(["heartbeat", "here"]) == code
    bench.sql("DROP DATABASE thl_heartbeats")
