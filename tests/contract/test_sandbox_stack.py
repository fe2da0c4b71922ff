"""`thl sandbox`: servers started by one process are found and stopped by another."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest
from click.testing import CliRunner, Result

from connector.cli import thl
from connector.commands.sandbox import sandbox
from connector.config.loading import load
from connector.sandbox import first_steps, state
from connector.sandbox.mysqld import Mysqld
from connector.sandbox.process import Process
from connector.sandbox.stack import Stack
from tests.support.producing import until

pytestmark = pytest.mark.servers


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "sandbox"
    Stack(tmp_path / "sandbox").down()


def thl_sandbox(*words: str | Path) -> Result:
    result = CliRunner().invoke(sandbox, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


def running(folder: Path) -> dict[str, bool]:
    told = json.loads(thl_sandbox("status", "--format", "json", "--folder", folder).output)
    return {server["name"]: server["running"] for server in told}


def test_sandbox_starts_reports_and_stops_servers(folder: Path) -> None:
    told = thl_sandbox("up", "--folder", folder, "--target", "postgres").output
    assert [line.split()[0] for line in told.splitlines()[:3]] == ["mysql", "kafka", "postgres"]
    assert told.splitlines()[0].endswith(f"password in {folder / 'mysql' / 'password'}")
    secret = (folder / "mysql" / "password").read_text()
    assert secret not in told
    assert secret not in (folder / "stack.json").read_text()
    assert secret not in thl_sandbox("status", "--folder", folder).output
    assert running(folder) == {"mysql": True, "kafka": True, "postgres": True}
    first = state.load(folder)

    killed = next(server for server in first if server.name == "kafka")
    os.kill(killed.process.pid, signal.SIGKILL)
    until(lambda: not killed.process.running)
    assert running(folder) == {"mysql": True, "kafka": False, "postgres": True}

    postgres = next(server for server in first if server.name == "postgres")
    assert postgres.stop()
    thl_sandbox("up", "--folder", folder)
    assert running(folder) == {"mysql": True, "kafka": True, "postgres": True}, "what this folder had is started again"
    again = state.load(folder)
    assert [server.port for server in again] == [server.port for server in first]
    assert again[0] == first[0], "what runs is left alone"

    assert thl_sandbox("down", "--folder", folder, "--delete").output.count("ended") == 3
    assert not any(server.process.running for server in again)
    assert not folder.exists()


def test_up_ends_with_a_configuration_and_commands_that_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    monkeypatch.chdir(folder.parent)
    told = thl_sandbox("up", "--folder", folder.name).output
    commands = [shlex.split(line) for line in told.splitlines() if line.startswith("  ")]
    assert [command[:2] for command in commands[1:]] == [["thl", "produce"], ["thl", "apply"]]

    subprocess.run(commands[0], check=True)
    config = load(Path(commands[1][-1]))
    with pymysql.connect(
        host=config.source.host,
        port=config.source.port,
        user=config.source.user,
        password=config.source.password.get_secret_value(),
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT item FROM shop.orders")
        assert cursor.fetchall() == (("tea",),)
    assert config.kafka.bootstrap == state.load(folder)[1].address
    assert config.target.url.get_secret_value() == f"sqlite:///{folder / 'target.db'}"

    (folder / "thl.yaml").write_text("service: mine\n")
    thl_sandbox("up", "--folder", folder)
    assert (folder / "thl.yaml").read_text() == "service: mine\n", "what the user changed is kept"


def test_a_mysql_target_is_a_second_server_that_the_configuration_reaches(folder: Path) -> None:
    thl_sandbox("up", "--folder", folder, "--target", "mysql")
    assert running(folder) == {"mysql": True, "kafka": True, "mysql-target": True}
    said = CliRunner().invoke(thl, ["check", "--config", str(folder / "thl.yaml")]).output
    assert re.search(r"^OK +target +MySQL", said, re.MULTILINE), said


def test_no_server_of_a_stack_has_the_server_id_of_another(tmp_path: Path) -> None:
    """A target with the source's would ignore what the source logs."""
    made = [Stack(tmp_path)._make(name, 7)[0] for name in ("mysql", "mysql-target", "mariadb")]
    ids = [server.settings["server_id"] for server in made if isinstance(server, Mysqld)]
    assert len(ids) == len({*ids}) == 3


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("sqlite", "sqlite:////f/target.db"),
        ("duckdb", "duckdb:////f/target.duckdb"),
        ("postgres", "postgresql://thl:thl@127.0.0.1:7/postgres"),
        ("mariadb", "mariadb://root:of-mariadb@127.0.0.1:7"),
    ],
)
def test_configuration_has_the_url_of_its_target(tmp_path: Path, target: str, url: str) -> None:
    servers = []
    for name, address in {
        "mysql": "mysql://root@127.0.0.1:7",
        "kafka": "127.0.0.1:7",
        "postgres": "postgresql://thl:thl@127.0.0.1:7/postgres",
        "mariadb": "mysql://root@127.0.0.1:7",
    }.items():
        servers.append(state.RunningServer(name, Process(1, 0), address, 7, str(tmp_path / name), "", 15))
        if address.startswith("mysql:"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "password").write_text(f"of-{name}")
    first_steps.write(tmp_path, servers, target)
    assert stat.S_IMODE((tmp_path / "thl.yaml").stat().st_mode) == 0o600  # it has passwords
    assert load(tmp_path / "thl.yaml").target.url.get_secret_value() == url.replace("/f/", f"{tmp_path}/")


def test_down_spares_another_process_with_the_recorded_pid(folder: Path) -> None:
    folder.mkdir()
    me = Process.of(os.getpid())
    somebody_before = Process(me.pid, me.started - 1)
    state.save(folder, [state.RunningServer("mysql", somebody_before, "", 1, "", "", int(signal.SIGKILL))])
    assert Stack(folder).down() == []


def test_status_and_down_without_servers_succeed(folder: Path) -> None:
    assert "nothing was started" in thl_sandbox("status", "--folder", folder).output
    assert thl_sandbox("down", "--folder", folder).output == ""
