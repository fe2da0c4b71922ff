"""Commits of several clients at a steady rate, each timed from the moment at which it was due."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Thread
from typing import Any, Final

CLIENTS: Final = 8  # of a steady rate
WARM: Final = 2.0  # seconds that are not counted


def commits(
    connect: Callable[[], AbstractContextManager[Any]], statement: Callable[[int], str], seconds: float, rate: int
) -> list[float]:
    """The milliseconds of each commit.

    Args:
        connect: opens a connection.
        statement: the statement of the commit with this number, complete with its schema.
        seconds: how long it is measured, after `WARM`.
        rate: commits a second of `CLIENTS` clients; 0: one client commits without a pause.
    """
    took: list[float] = []
    failed: list[BaseException] = []
    clients = CLIENTS if rate else 1
    begun = time.monotonic()

    def client(number: int) -> None:
        try:
            with connect() as connection, connection.cursor() as cursor:
                connection.autocommit(True)
                sent = 0
                while (now := time.monotonic()) < begun + WARM + seconds:
                    due = begun + (sent * clients + number) / rate if rate else now
                    time.sleep(max(0.0, due - now))
                    started = max(due, begun) if rate else time.monotonic()
                    cursor.execute(statement(sent * clients + number))
                    sent += 1
                    if started >= begun + WARM:
                        took.append((time.monotonic() - started) * 1000)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    threads = [Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return took
