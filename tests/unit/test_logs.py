"""With `--log-format json` everything on standard error is JSON, one event a line."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest

from connector import cli, logs
from connector.errors import ConnectorError
from connector.spark.jvm_errors import JvmErrors


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    yield
    root = logging.getLogger()
    root.handlers[:] = [one for one in root.handlers if not isinstance(one.formatter, logs.JsonFormatter)]


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_error_is_one_event_with_its_place_remedy_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["config", "--log-format", "json", "--set", "source.port=0"]) == 2
    (event,) = events(capsys.readouterr().err)
    assert (event["level"], event["exit_code"]) == ("ERROR", 2)
    assert "source.port" in event["event"]
    assert "hint" in event
    assert "\n" not in event["event"].strip()


def test_an_error_of_the_command_line_that_the_command_finds_is_one_event(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["apply", "--log-format", "json", "--skip-seqno", "1"]) == 2
    (event,) = [one for one in events(capsys.readouterr().err) if one["level"] == "ERROR"]
    assert "--reason go together" in event["event"]


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_defect_is_one_event_with_its_traceback_if_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, debug: str
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("a defect")

    monkeypatch.setenv("THL_DEBUG", debug)
    monkeypatch.setattr("connector.config.loading.load_settings", fail)
    assert cli.run(["config", "--log-format", "json"]) == cli.DEFECT
    (event,) = events(capsys.readouterr().err)
    assert "this is a defect of thl: KeyError" in event["event"]
    assert ("traceback" in event) == bool(debug)


def test_ids_of_an_error_are_fields(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ConnectorError("a row is missing", hint="load the table", seqno=41, name="orders", args=None)

    monkeypatch.setattr("connector.config.loading.load_settings", fail)
    assert cli.run(["config", "--log-format", "json"]) == 1
    (event,) = events(capsys.readouterr().err)
    assert event["event"] == "a row is missing"
    assert (event["where"], event["hint"]) == ({"seqno": "41", "name": "orders"}, "load the table")


def test_the_last_line_of_a_command_is_an_event_with_json_and_itself_without(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.set_up_logs("json")
    logs.echo("stopped after event 7")
    (event,) = events(capsys.readouterr().err)
    assert (event["event"], event["level"]) == ("stopped after event 7", "INFO")
    logs.set_up_logs("text")
    logs.echo("stopped after event 7")
    assert capsys.readouterr().err == "stopped after event 7\n"


def test_lines_of_the_jvm_are_events(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up_logs("json")
    errors = JvmErrors()
    with errors as output:
        os.write(output, b"Error: of a library\n\tat some.Thing\n")
        jvms = os.dup(output)
    os.write(jvms, b"further \xff\n")
    os.close(jvms)
    errors._thread.join()
    found = events(capsys.readouterr().err)
    assert sorted(one["event"] for one in found) == ["\tat some.Thing", "Error: of a library", "further \ufffd"]
    assert {one["logger"] for one in found} == {"connector.spark.jvm"}
