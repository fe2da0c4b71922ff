"""`thl check` with servers that do not answer."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import pytest

from connector import cli
from connector.check import checks
from connector.check.checks import check
from connector.check.result import Check, CheckState, as_text, failed, ok
from connector.config.loading import load
from connector.config.model import Config
from connector.errors import ConfigError, ConnectorError, PreflightError
from tests.support.clock import PATIENCE


@pytest.fixture
def silent() -> Iterator[list[socket.socket]]:
    """Three servers that accept connections and never say a word."""
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return True
    return False


def test_servers_are_asked_side_by_side(silent: list[socket.socket]) -> None:
    source, kafka, target = (server.getsockname()[1] for server in silent)
    config = load(
        None,
        {},
        [
            "source.host=127.0.0.1",
            f"source.port={source}",
            f"kafka.bootstrap=127.0.0.1:{kafka}",
            f"target.url=postgresql://u:p@127.0.0.1:{target}/d",
        ],
    )
    with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        running = pool.submit(check, config, {})
        connections = [stack.enter_context(server.accept()[0]) for server in silent]
        assert all(map(is_open, connections))
        failed = {one.name: one.exit_code for one in running.result() if one.state is CheckState.FAILED}
    assert failed == {"source": 4, "kafka": 4, "target": 4}


def test_findings_come_while_a_server_hangs(silent: list[socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "PATIENCE", 3600.0)
    source, kafka, _ = silent
    kafka.close()
    sets = [
        "source.host=127.0.0.1", f"source.port={source.getsockname()[1]}", "target.url=sqlite:///none.db",
        "kafka.bootstrap=127.0.0.1:1",
    ]  # fmt: skip
    monkeypatch.setattr(checks, "check_kafka", lambda _: ([failed("kafka", ConnectorError("refused"))], False))
    found = checks.findings(load(None, {}, sets), {})
    assert {next(found).name for _ in range(3)} == {"kafka", "target", "java"}
    source.accept()[0].close()
    assert [one.name for one in found] == ["source"]


def test_finding_is_known_while_its_subject_is_checked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Event()

    def source(*_: object) -> Iterator[Check]:
        yield ok("source", "it answers")
        yield ok("grants", f"{known.wait(PATIENCE)}")

    monkeypatch.setattr(checks, "check_kafka", lambda _: ([], True))
    monkeypatch.setattr(checks, "check_target_server", lambda *_: [])
    monkeypatch.setattr(checks, "check_source", source)
    for one in checks.findings(Config(), {}):
        if one.name == "source":
            known.set()
        assert one.name != "grants" or one.found == "True"


@pytest.mark.parametrize("given", ["text", "json"])
def test_each_finding_is_printed_when_it_is_known(
    given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []

    def findings(*_: object) -> Iterator[Check]:
        for name in ("target", "source"):
            yield failed(name, ConfigError("no") if name == "target" else PreflightError("no"))
            printed.append(capsys.readouterr().out)

    monkeypatch.setattr(checks, "findings", findings)
    assert cli.run(["check", "--format", given]) == PreflightError.exit_code  # the source's, which came last
    rest = capsys.readouterr().out
    if given == "text":
        assert [line.split() for line in printed] == [["FAILED", "target", "no"], ["FAILED", "source", "no"]]
        assert not rest
    else:
        assert printed == ["", ""]
        assert [one["check"] for one in json.loads(rest)] == ["source", "target"]


def test_cause_is_in_the_result_and_not_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["source.host=127.0.0.1", "source.port=1", "kafka.bootstrap=127.0.0.1:1", "target.url=sqlite:///none.db"]
    assert cli.run(["check", *(part for text in sets for part in ("--set", text))]) == 4
    shown = capsys.readouterr()
    assert not shown.err
    (kafka,) = (line for line in shown.out.splitlines() if line.startswith("FAILED") and "kafka" in line)
    assert "Connection refused" in kafka


def test_control_characters_of_a_server_do_not_reach_the_terminal() -> None:
    told = failed("source", ConnectorError("it says \x1b[31mevil\r\nFAKE", hint="\x1b]0;title\x07"))
    text = as_text([told])
    assert not [char for char in text if not char.isprintable() and char != "\n"]
    assert all(line.startswith((told.name, " ", "FAILED")) for line in text.splitlines())
