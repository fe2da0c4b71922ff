"""A registry's failure is either temporary or a refusal.

Against a real registry: `tests/integration/producer/test_registry.py`. It cannot be made to answer with these statuses.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pydantic import SecretStr

from connector.config.kafka import Registry
from connector.config.model import Config
from connector.errors import ConnectorError, PreflightError, RegistryUnavailable
from connector.kafka.registry import registered_number

SCHEMA = {"type": "record", "name": "R", "fields": []}


@contextmanager
def answering(status: int) -> Iterator[str]:
    """The URL of a server that answers everything with one status."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"error_code": status, "message": "as it says"}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing: the test says what went wrong."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (429, RegistryUnavailable),
        (500, RegistryUnavailable),
        (503, RegistryUnavailable),
        (401, PreflightError),
        (403, PreflightError),
        (409, PreflightError),
        (422, PreflightError),
    ],
)
def test_a_busy_or_failing_registry_is_retried_and_a_refusing_one_is_not(
    status: int, expected: type[ConnectorError]
) -> None:
    with answering(status) as url:
        config = Config(service="s", registry=Registry(url=SecretStr(url), properties={"max.retries": "0"}))
        with pytest.raises(ConnectorError) as raised:
            registered_number(config, SCHEMA)
    assert type(raised.value) is expected
    assert raised.value.retry is (expected is RegistryUnavailable)
