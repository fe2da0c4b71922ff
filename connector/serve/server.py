"""Watches services, and answers requests, until it is stopped."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any, Final

from flask import Flask
from waitress.server import BaseWSGIServer, create_server

from connector.addresses import on_this_machine
from connector.background import LEAVE
from connector.clock import Clock
from connector.config.serve import Serve
from connector.errors import ConfigError
from connector.serve.app import create_app
from connector.serve.connections import PLACES, REQUEST_SECONDS, BoundedChannel
from connector.serve.guard import Guard
from connector.serve.history import LagHistory
from connector.serve.history_file import HistoryFile, compact, history_file, restore, rewrite, usable
from connector.serve.jobs import Jobs
from connector.serve.services import ServedService
from connector.serve.watcher import Watcher

LOG: Final = logging.getLogger("connector.serve")
THREADS: Final = 4
CLEANUP: Final = 5  # seconds between two looks for connections that have to end
LOOK: Final = 5.0  # seconds between two looks at the size of the history's file, and at the server's thread


def serve(
    services: Sequence[ServedService], settings: Serve, clock: Clock, stop: Event, sets: Sequence[str] = ()
) -> None:
    """Serve until `stop` is set.

    Args:
        services: at least one.
        settings: of the server.
        sets: the `--set` options with which the services were configured, for the commands of buttons.
        clock: the time.
        stop: ends it.

    Raises:
        ConfigError: it cannot listen on `serve.host` and `serve.port`, or the history's file cannot be used.
    """
    with ExitStack() as stack:
        file = history_file(services, settings)
        if file is not None:
            with usable(settings):
                stack.enter_context(file.locked())
        watchers = watched(services, settings, clock, file)
        by_name = {watcher.service.name: watcher for watcher in watchers}
        jobs = Jobs(
            sets,
            clock,
            lambda service, comparison: by_name[service].compared(comparison),
            timeout=settings.command_timeout,
        )
        app = create_app(watchers, Guard(settings, clock), clock, jobs)
        stack.callback(jobs.close)
        answers = stack.enter_context(_listening(app, settings))
        stack.enter_context(_watching(watchers, clock))
        if not on_this_machine(settings.host):
            LOG.warning("everyone who reaches this address may read, without TLS", extra={"host": settings.host})
        LOG.info(
            "serving",
            extra={"url": f"http://{_shown(settings.host)}:{settings.port}/", "services": len(watchers)},
        )
        while not stop.wait(LOOK):
            if not answers.is_alive():
                raise RuntimeError("the thread that answers requests has ended")  # its exception is in the log
            if file is not None and file.full:
                compact(file, watchers)


def watched(
    services: Sequence[ServedService], settings: Serve, clock: Clock, file: HistoryFile | None = None
) -> list[Watcher]:
    """Return the watchers of services, with what the history's file has of them.

    Raises:
        ConfigError: the file cannot be used.
    """
    watchers = [
        Watcher(service, settings, clock, LagHistory(service.name, settings.history_hours, file))
        for service in services
    ]
    if file is not None:
        now = clock.now() / 1e6
        with usable(settings):
            restore(file, watchers, now - settings.history_hours * 3600, now)
            rewrite(file, watchers)
    return watchers


@contextmanager
def _watching(watchers: Sequence[Watcher], clock: Clock) -> Iterator[None]:
    """Read the services in threads while in the context; those that wait for a server are left behind together."""
    ended = Event()
    threads = [
        Thread(target=watcher.run, args=(ended,), name=f"watch-{watcher.service.name}", daemon=True)
        for watcher in watchers
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        until = clock.monotonic() + LEAVE
        for thread in threads:
            thread.join(max(until - clock.monotonic(), 0.0))


@contextmanager
def _listening(app: Flask, settings: Serve) -> Iterator[Thread]:
    """Answer requests in threads while in the context; yields the thread that listens."""
    sockets: dict[int, Any] = {}
    try:
        server: Any = create_server(
            app,
            map=sockets,
            host=settings.host,
            port=settings.port,
            threads=THREADS,
            ident="",
            connection_limit=PLACES,
            channel_timeout=REQUEST_SECONDS,
            cleanup_interval=CLEANUP,
            asyncore_use_poll=True,  # select() ends the server at a file descriptor beyond 1023
            max_request_header_size=16 << 10,
            max_request_body_size=64 << 10,
            clear_untrusted_proxy_headers=True,
        )
    except (OSError, ValueError) as error:  # ValueError: no such host
        reason = error.strerror if isinstance(error, OSError) else "the host is unknown"
        raise ConfigError.of_fields(
            f"thl serve cannot listen on {settings.host}, port {settings.port}: {reason}",
            {"serve.port": None, "serve.host": None},
            hint="another process has the port, or the host is no address of this machine: --set serve.port=N",
        ) from error
    for one in list(sockets.values()):
        if isinstance(one, BaseWSGIServer):  # of each address of the host
            one.channel_class = BoundedChannel
    thread = Thread(target=server.run, name="serve", daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        for one in list(sockets.values()):
            if isinstance(one, BaseWSGIServer):
                trigger: Any = one.trigger
                trigger.pull_trigger(one.close)  # in its own thread, which is waiting for these sockets
        thread.join(LEAVE)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
