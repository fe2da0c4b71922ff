"""A session with the source does not wait forever for a silent server."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from connector.config.source import Source
from connector.errors import PreflightError, SourceUnavailable
from connector.mysql.server import connection


def test_a_server_that_does_not_greet_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(SourceUnavailable) as error:
            connection.connect(Source(host="127.0.0.1", port=port))
        assert error.value.where["source"] == f"127.0.0.1:{port}"


def test_server_of_another_protocol_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 5)
    with socket.create_server(("127.0.0.1", 0)) as other, ThreadPoolExecutor(1) as pool:
        port = other.getsockname()[1]
        asked = pool.submit(connection.connect, Source(host="127.0.0.1", port=port))
        answering, _ = other.accept()
        with answering:
            answering.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n" * 4)
        with pytest.raises(PreflightError) as error:
            asked.result()
    assert "source.port" in error.value.hint
