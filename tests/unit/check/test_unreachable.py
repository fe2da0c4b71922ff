"""`thl check` with servers that do not answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from connector import cli
from connector.check.checks import check
from connector.check.result import CheckState, as_text, failed
from connector.config.loading import load
from connector.errors import ConnectorError


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
