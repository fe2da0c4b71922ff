"""Watches whether commits on the source wait for this producer, if `source.semi_sync` asks for it.

The source becomes asynchronous by itself when an acknowledgement takes too long, and says so only in its own log.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Final

from connector import metrics
from connector.background import in_background
from connector.config.model import Config
from connector.errors import ConnectorError
from connector.mysql.server.connection import session
from connector.mysql.server.semi_sync import read_state, semi_sync_problem
from connector.mysql.server.source_state import is_read

LOG: Final = logging.getLogger(__name__)
EVERY: Final = 5.0  # seconds


class SemiSyncMonitor:
    """Reads the source's state; logs each change of it, and keeps the metrics.

    Args:
        config: the service and its source.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._known: str | None = None  # the last problem; "": commits wait; None: no state was read yet

    def probe(self) -> None:
        """Read the state once."""
        service = self._config.service
        on, not_waited = metrics.semi_sync_on.labels(service), metrics.semi_sync_not_waited.labels(service)
        try:
            with session(self._config.source) as connection:
                state = read_state(connection)
                connected = is_read(connection, self._config.source.server_id)
        except ConnectorError as error:
            on.set(math.nan)
            LOG.debug("the source's semi-synchronous state is not known", extra={"service": service, "why": error})
            return
        problem = semi_sync_problem(state, connected=connected)
        on.set(0 if problem else 1)
        if state is not None:
            not_waited.set(state.not_waited)
        if problem != self._known:
            self._known = problem
            fields = {"service": service, "not_waited": state and state.not_waited}
            if problem:
                LOG.warning(f"commits on the source do not wait until Kafka has them: {problem}", extra=fields)
            else:
                LOG.info("commits on the source wait until Kafka has them", extra=fields)


@contextmanager
def watched_semi_sync(config: Config) -> Iterator[None]:
    """Watch the source while in the context, if `source.semi_sync` is on."""
    if not config.source.semi_sync:
        yield
        return
    monitor = SemiSyncMonitor(config)
    metrics.semi_sync_on.labels(config.service).set(math.nan)

    def at_intervals(ended: Event) -> None:
        while not ended.wait(EVERY):
            monitor.probe()

    with in_background("semi-sync", at_intervals):
        yield
