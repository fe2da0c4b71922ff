"""The loading of commands, and the output of errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from connector import cli
from connector.errors import ConfigError, Fenced
from connector.logs import JsonFormatter, TextFormatter


def a_command(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command()
    def broken() -> None:
        raise error

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda self, ctx, name: broken)


def test_help_lists_every_command_without_importing_one() -> None:
    script = (
        "import sys; from connector import cli; code = cli.run(['--help']); "
        "heavy = ('pydantic', 'pymysql', 'confluent_kafka', 'pyspark', 'pyarrow', 'psycopg', 'connector.config'); "
        "sys.exit(code or any(m in sys.modules for m in heavy))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for name in cli.COMMANDS:
        assert f"  {name} " in done.stdout


def test_producer_does_not_import_modules_of_the_applier(tmp_path: Path) -> None:
    script = (
        "import sys; from connector import cli; from connector.producer import producer as produce\n"
        "class Stopped:\n"
        "    request = None\n"
        "    def __init__(self, *arguments, **options): pass\n"
        "    def run(self): return None\n"
        "produce.Producer = Stopped\n"
        "code = cli.run(['produce'])\n"
        "print(code, *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    code, *imported = done.stdout.split()
    assert code == "0"
    assert "confluent_kafka" in imported
    assert not {"pyspark", "py4j", "pyarrow", "numpy", "pandas", "psycopg", "sqlite3", "rich"} & set(imported)
    assert not {"httpx2", "authlib"} & set(imported)


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_can_be_imported(name: str) -> None:
    command = cli.LazyGroup().get_command(click.Context(cli.thl), name)
    assert isinstance(command, click.Command)


def test_connector_error_is_a_message_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("THL_DEBUG", raising=False)
    a_command(monkeypatch, Fenced("a newer producer has taken over", hint="look for it", service="shop"))
    assert cli.run(["produce"]) == Fenced.exit_code
    assert capsys.readouterr().err == ("thl: a newer producer has taken over [service=shop]\n  hint: look for it\n")


def test_a_defect_is_one_line_and_a_traceback_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("THL_DEBUG", raising=False)
    a_command(monkeypatch, ZeroDivisionError("oh"))
    assert cli.run(["produce"]) == cli.DEFECT
    told = capsys.readouterr().err
    assert "ZeroDivisionError: oh" in told
    assert len(told.splitlines()) == 1
    monkeypatch.setenv("THL_DEBUG", "1")
    assert cli.run(["produce"]) == cli.DEFECT
    assert "Traceback" in capsys.readouterr().err


def test_unknown_command_is_answered_with_one_that_may_be_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["chekc"]) == 2
    assert "Did you mean check?" in capsys.readouterr().err


def test_unknown_option_prints_clicks_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--nonsense"]) == 2
    assert "--nonsense" in capsys.readouterr().err
    assert cli.run(["nonsense"]) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--done-seqno", "7"], "go together"),
        (["--exclude-table", "shop.items"], "go together"),
        (["--reason", "nothing"], "go together"),
        (["--exclude-table", "items", "--reason", "why"], "SCHEMA.TABLE"),
    ],
)
def test_skip_and_exclude_need_a_reason_and_a_full_name(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["apply", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_wrong_configuration_names_the_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["config", "--set", "source.port=0"]) == 2
    assert "source.port" in capsys.readouterr().err


def test_log_lines_carry_their_fields() -> None:
    import json
    import logging

    record = logging.makeLogRecord(
        {
            "name": "connector.producer.publish",
            "levelname": "INFO",
            "msg": "epoch begun",
            "epoch": 3,
            "created": 0.0,
            "msecs": 7.0,
        }
    )
    assert TextFormatter().format(record) == "1970-01-01T00:00:00.007Z INFO producer.publish epoch begun epoch=3"
    assert json.loads(JsonFormatter().format(record))["epoch"] == 3


def test_lost_jvm_connection_prints_only_the_error() -> None:
    script = (
        "import socket, threading; from connector.logs import set_up_logs\n"
        "from py4j.java_gateway import GatewayParameters, JavaGateway\n"
        "from py4j.protocol import Py4JError\n"
        "set_up_logs('text')\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "threading.Thread(target=lambda: (server.accept()[0].close(), server.close()), daemon=True).start()\n"
        "gateway = JavaGateway(gateway_parameters=GatewayParameters(port=server.getsockname()[1]))\n"
        "try:\n"
        "    gateway.entry_point.asked()\n"
        "except Py4JError:\n"
        "    print('raised')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("raised\n", "")


def test_verify_of_an_empty_archive_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["archive", str(tmp_path), "--verify"]) == ConfigError.exit_code
    assert "no binary log file" in capsys.readouterr().err
