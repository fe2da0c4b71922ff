"""The end of a command that runs until it is stopped: by SIGTERM or SIGINT, or by a request to go offline."""

from __future__ import annotations

import signal
from threading import Event

from connector.logs import echo


def stop_at_signals(stop: Event | None = None) -> Event:
    """Set an event at SIGTERM and SIGINT, in place of the handlers that there are.

    Args:
        stop: the event; None: a new one.
    """
    stop = stop or Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def echo_request(asked_by: str, reason: str) -> None:
    """Print who asked for the end by `thl offline`, and the reason."""
    echo(f"offline, as {asked_by} asked: {reason or 'no reason given'}")
