"""The server's threads: many files, many services that wait, a host that is not there, and a thread that ends."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import ExitStack, suppress
from threading import Barrier, Event, Thread
from typing import Any

import pytest

from connector.clock import SystemClock
from connector.config.serve import Serve
from connector.errors import ConfigError
from connector.serve import connections, server
from connector.serve import watcher as watcher_module
from connector.serve.jobs import Jobs
from tests.support.clock import PATIENCE
from tests.support.serving import Readings, ask, config, free_port, service, serving


def test_more_than_a_thousand_open_files_do_not_end_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (Readings(),))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 1500:
        pytest.skip("this process may not open so many files")
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 1500), before[1]))
        for _ in range(1100):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        with serving(service(), settings=Serve(port=free_port())) as port:
            assert ask(port, "/healthz").status == 200


def test_services_that_wait_for_servers_are_left_together(monkeypatch: pytest.MonkeyPatch) -> None:
    services, stop = [service(config(f"s{number}")) for number in range(5)], Event()
    together, left = Barrier(len(services)), []

    def run(_: object, ended: Event) -> None:
        ended.wait()
        together.wait(PATIENCE)  # until each was told to end
        left.append(1)

    monkeypatch.setattr(watcher_module.Watcher, "run", run)
    monkeypatch.setattr(server, "LEAVE", PATIENCE)
    stop.set()
    server.serve(services, Serve(port=free_port()), SystemClock(), stop)
    assert len(left) == len(services)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
def test_host_that_is_none_of_this_machine_is_an_error_with_its_option(host: str) -> None:
    with pytest.raises(ConfigError) as raised:
        server.serve([service()], Serve(host=host, port=free_port()), SystemClock(), Event())
    assert "serve.host" in raised.value.fields


def test_server_ends_if_nothing_answers_requests_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (Readings(),))
    monkeypatch.setattr(server, "LOOK", 0.01)
    monkeypatch.setattr(Thread, "is_alive", lambda _: False)
    with pytest.raises(RuntimeError, match="answers requests"):
        server.serve([service()], Serve(port=free_port()), SystemClock(), Event())


def test_request_that_arrives_byte_by_byte_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (Readings(),))
    monkeypatch.setattr(server, "REQUEST_SECONDS", 1)
    monkeypatch.setattr(server, "CLEANUP", 1)
    with (
        serving(service(), settings=Serve(port=free_port())) as port,
        socket.create_connection(("127.0.0.1", port), timeout=0.05) as slow,
    ):
        slow.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        sent = 0
        while not ended(slow):
            sent += 1
            assert sent < 400, "it keeps its place as long as it likes"
            with suppress(OSError):  # it may end now
                slow.sendall(b"x")
        assert ask(port, "/healthz").status == 200


def test_requests_one_after_another_keep_their_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (Readings(),))
    with (
        serving(service(), settings=Serve(port=free_port())) as port,
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client,
    ):
        request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        for _ in range(3):
            client.sendall(request[:20])
            client.sendall(request[20:])
            answer = b""
            while not answer.endswith(b"ok\n"):
                more = client.recv(4096)
                assert more
                answer += more


def test_one_address_leaves_places_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (Readings(),))
    monkeypatch.setattr(connections, "OF_ONE", 3)
    with serving(service(), settings=Serve(host="0.0.0.0", port=free_port())) as port, ExitStack() as stack:  # noqa: S104
        first = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.9", 0)))
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.9", 0)))
        too_many = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.9", 0)))
        assert ended(too_many)
        first.settimeout(0.05)
        assert not ended(first)
        assert ask(port, "/healthz").status == 200


def ended(client: socket.socket) -> bool:
    """True if the server has ended a connection."""
    try:
        return not client.recv(4096)
    except TimeoutError:
        return False
    except OSError:
        return True


def test_commands_end_after_the_configured_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    class Timed(Jobs):
        def __init__(self, *arguments: Any, timeout: float) -> None:
            given.append(timeout)
            super().__init__(*arguments, timeout=timeout)

    monkeypatch.setattr(watcher_module.Watcher.__init__, "__defaults__", (Readings(),))
    monkeypatch.setattr(server, "Jobs", Timed)
    with serving(service(), settings=Serve(port=free_port(), command_timeout=77)):
        assert given == [77]
