"""Runs a function in a thread of its own while a context lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

LEAVE: Final = 1.0  # seconds: a server that does not answer must not delay the end of a process


@contextmanager
def in_background(name: str, run: Callable[[Event], None], leave: float | None = LEAVE) -> Iterator[None]:
    """Run a function while in the context.

    Args:
        name: the thread's name.
        run: called with an event that is set at the context's end, after which it is to return.
        leave: seconds to wait for its return; None: without limit.
    """
    ended = Event()
    thread = Thread(target=run, args=(ended,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(leave)
