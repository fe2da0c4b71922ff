"""The target's line of `thl check` if the target cannot be asked: failure, place and remedy."""

from __future__ import annotations

import json
import socket
from concurrent.futures import Future
from typing import cast

import pytest

from connector import cli
from connector.check.checks import _check_dates, check_target_server
from connector.check.result import CheckState
from connector.config.filters import Filters
from connector.config.model import Config
from connector.mysql.server.connection import Connection
from connector.mysql.transforms.filters import Filter


def test_unreachable_target_is_named_with_a_remedy() -> None:
    with socket.socket() as bound:  # and not listening
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        url = f"postgresql://u:hidden@127.0.0.1:{port}/d"
        (found,) = check_target_server(Config.model_validate({"target": {"url": url}}), Future())
    assert (found.state, found.exit_code) == (CheckState.FAILED, 4)
    assert f"server='127.0.0.1:{port}'" in found.found or f"server=127.0.0.1:{port}" in found.found
    assert "target.url" in found.remedy
    assert "hidden" not in found.found + found.remedy


def test_mute_target_is_named_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        url = f"postgresql://u:hidden@127.0.0.1:{port}/d?connect_timeout=2"
        (found,) = check_target_server(Config.model_validate({"target": {"url": url}}), Future())
    assert (found.state, found.exit_code) == (CheckState.FAILED, 4)
    assert f"127.0.0.1:{port}" in found.found
    assert "target.url" in found.remedy


def test_wrong_target_url_is_a_result_beside_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        sets = [
            "target.url=mysql://u:hidden@h/db", "source.host=127.0.0.1", f"source.port={port}",
            f"kafka.bootstrap=127.0.0.1:{port}",
        ]  # fmt: skip
        assert cli.run(["check", "--format", "json", *(part for text in sets for part in ("--set", text))]) != 0
    results = {one["check"]: one for one in json.loads(capsys.readouterr().out)}
    assert results["target"]["state"] == "failed"
    assert {"source", "kafka", "java"} <= set(results)


def test_target_that_is_the_source_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.check.checks.check_target", lambda *_: "a server")
    source = {"source": {"host": "db", "port": 3307}}
    for port, states in ((3307, [CheckState.OK, CheckState.WARNING]), (3308, [CheckState.OK])):
        config = Config.model_validate({**source, "target": {"url": f"mysql://u:hidden@db:{port}"}})
        assert [one.state for one in check_target_server(config, Future())] == states


def test_unknown_scheme_is_a_finding_of_the_target_alone() -> None:
    config = Config.model_validate({"target": {"url": "oracle://h"}})
    assert [one.state for one in check_target_server(config, Future())] == [CheckState.FAILED]
    nothing_is_asked = cast("Connection", None)
    assert list(_check_dates(config, nothing_is_asked, Filter(Filters()))) == []
