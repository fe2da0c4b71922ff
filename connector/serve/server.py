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
from connector.background import LEAVE, in_background
from connector.clock import Clock
from connector.config.serve import Serve
from connector.errors import ConfigError
from connector.serve.app import create_app
from connector.serve.guard import Guard
from connector.serve.history import WIDTH, HistoryFile, LagHistory, Point
from connector.serve.jobs import Jobs
from connector.serve.services import ServedService
from connector.serve.watcher import Comparison, Watcher

LOG: Final = logging.getLogger("connector.serve")
THREADS: Final = 4
COMPACT: Final = 60.0  # seconds between two looks at the size of the history's file


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
    watchers, file = watched(services, settings, clock)
    by_name = {watcher.service.name: watcher for watcher in watchers}
    jobs = Jobs(sets, clock, lambda service, comparison: by_name[service].compared(comparison))
    app = create_app(watchers, Guard(settings, clock), clock, jobs)
    with ExitStack() as stack:
        stack.callback(jobs.close)
        stack.enter_context(_listening(app, settings))
        for watcher in watchers:
            stack.enter_context(in_background(f"watch-{watcher.service.name}", watcher.run))
        if not on_this_machine(settings.host):
            LOG.warning("everyone who reaches this address may read, without TLS", extra={"host": settings.host})
        LOG.info(
            "serving",
            extra={"url": f"http://{_shown(settings.host)}:{settings.port}/", "services": len(watchers)},
        )
        while not stop.wait(COMPACT):
            if file is not None and file.full:
                _rewrite(file, watchers)


def watched(
    services: Sequence[ServedService], settings: Serve, clock: Clock
) -> tuple[list[Watcher], HistoryFile | None]:
    """Return the watchers of services, with what the history's file has of them.

    Raises:
        ConfigError: the file cannot be used.
    """
    points = max(int(settings.history_hours * 3600 / WIDTH), 1)
    file = None if settings.history is None else HistoryFile(settings.history, 2 * points * len(services))
    watchers = [
        Watcher(service, settings, clock, LagHistory(service.name, settings.history_hours, file))
        for service in services
    ]
    if file is not None and settings.history is not None:
        try:
            _restore(file, watchers, clock.now() / 1e6 - settings.history_hours * 3600)
            _rewrite(file, watchers)
        except OSError as error:
            raise ConfigError.of_fields(
                f"the file of the history cannot be used: {error.strerror}",
                {"serve.history": str(settings.history)},
                hint="let serve.history name a file that this user may write, or none",
            ) from error
    return watchers, file


def _restore(file: HistoryFile, watchers: Sequence[Watcher], since: float) -> None:
    points: dict[str, list[Point]] = {watcher.service.name: [] for watcher in watchers}
    by_name = {watcher.service.name: watcher for watcher in watchers}
    for kind, service, value in file.read(since):
        if kind == "point" and service in points:
            points[service].append(Point.parse(value))
        elif kind == "comparison" and service in by_name:
            comparison = Comparison.parse(value)
            by_name[service].comparisons[comparison.target] = comparison
    for name, found in points.items():
        by_name[name].history.restore(found)


def _rewrite(file: HistoryFile, watchers: Sequence[Watcher]) -> None:
    file.rewrite(lambda: _lines(watchers))


def _lines(watchers: Sequence[Watcher]) -> list[tuple[str, str, dict[str, object]]]:
    lines: list[tuple[str, str, dict[str, object]]] = []
    for watcher in watchers:
        name = watcher.service.name
        lines += [("point", name, point.as_object()) for point in watcher.history.points()]
        lines += [("comparison", name, one.as_object()) for one in watcher.comparisons.values()]
    return lines


@contextmanager
def _listening(app: Flask, settings: Serve) -> Iterator[None]:
    """Answer requests in threads while in the context."""
    sockets: dict[int, Any] = {}
    try:
        server: Any = create_server(
            app,
            map=sockets,
            host=settings.host,
            port=settings.port,
            threads=THREADS,
            ident="",
            connection_limit=100,
            channel_timeout=30,
            max_request_header_size=16 << 10,
            max_request_body_size=64 << 10,
            clear_untrusted_proxy_headers=True,
        )
    except OSError as error:
        raise ConfigError.of_fields(
            f"thl serve cannot listen on {settings.host}, port {settings.port}: {error.strerror}",
            {"serve.port": None, "serve.host": None},
            hint="another process has the port, or the host is no address of this machine: --set serve.port=N",
        ) from error
    thread = Thread(target=server.run, name="serve", daemon=True)
    thread.start()
    try:
        yield
    finally:
        for one in list(sockets.values()):
            if isinstance(one, BaseWSGIServer):
                trigger: Any = one.trigger
                trigger.pull_trigger(one.close)  # in its own thread, which is waiting for these sockets
        thread.join(LEAVE)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
