"""A session with the source does not wait for ever for a server that says nothing."""

from __future__ import annotations

import socket

import pytest

from connector.config.model import Source
from connector.errors import SourceUnavailable
from connector.mysql.server import connection


def test_a_server_that_does_not_greet_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(SourceUnavailable) as error:
            connection.connect(Source(host="127.0.0.1", port=port))
        assert error.value.where["source"] == f"127.0.0.1:{port}"
