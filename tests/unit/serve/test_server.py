"""The server's threads: many files, many services that wait, a host that is not there, and a thread that ends."""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack
from threading import Barrier, Event, Thread

import pytest

from connector.clock import SystemClock
from connector.config.serve import Serve
from connector.errors import ConfigError
from connector.serve import server
from connector.serve import watcher as watcher_module
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
