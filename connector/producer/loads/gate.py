"""Decides when a round of loads may begin.

It waits after a round that could not be opened, for tables that are locked, for `source.snapshot.max_rows_per_second`,
and for what the source shows: its lag as a replica, the time until it purges what the stream needs next, a stream that
has to catch up.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from connector import metrics
from connector.clock import Clock
from connector.config.model import Config
from connector.errors import ConnectorError
from connector.log.epochs.load_pause import LoadPause, PauseCause
from connector.log.epochs.loads import OutstandingLoad
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import PositionRecord
from connector.producer.sources.source import EventSource

LOG: Final = logging.getLogger(__name__)
WAIT: Final = 0.5  # seconds after a round that could not be opened; doubled while the source refuses a lock
LONGEST_WAIT: Final = 30.0
RECHECK: Final = 1.0  # seconds until a source that lags is asked again
POSTPONED: Final = 10.0  # seconds for which a table that is locked is left out of rounds
WARN_EVERY: Final = 10  # rounds that could not be opened
LOG_AGAIN_SECONDS: Final = 60.0  # seconds for which a pause that has been logged is not logged again


class RoundGate:
    """The conditions of the next round. Asks the source in `opens` alone.

    Args:
        config: the configuration.
        source: the source.
        clock: the clock.
    """

    def __init__(self, config: Config, source: EventSource, clock: Clock) -> None:
        self._config = config
        self._source = source
        self._clock = clock
        self._not_before = 0.0
        self._postponed: dict[TableName, float] = {}
        self._in_vain = 0  # attempts since the last round
        self._cause: PauseCause | None = None
        self._logged_at: dict[PauseCause, float] = {}
        self._pause_logged = False  # the pause is logged, its end is not

    def admitted(self, loads: Sequence[OutstandingLoad]) -> list[OutstandingLoad]:
        """Loads that no local wait holds back; `opens` then asks the source."""
        now = self._clock.monotonic()
        if now < self._not_before:
            return []
        return [one for one in loads if self._postponed.get(one.request.table, 0.0) <= now]

    def opens(self, position: PositionRecord, newest_commit: int | None) -> bool:
        """Ask the source whether a round may begin; log why it may not, once.

        Args:
            position: of all that the stream has given.
            newest_commit: commit time of the newest event before it, in µs; None: unknown.
        """
        try:
            pause = self._source.load_pause(position, newest_commit)
        except ConnectorError as error:
            self.refused(error.located)
            return False
        self._note(pause)
        if pause is not None and pause.ordinary:
            self.refused(pause.why)
        elif pause is not None:
            self._not_before = self._clock.monotonic() + RECHECK
        return pause is None

    def begun(self) -> None:
        """A round has begun."""
        self._in_vain = 0

    def refused(self, reason: str, *, patient: bool = False) -> None:
        """A round could not be opened.

        Args:
            reason: why not.
            patient: wait the longer, the more often.
        """
        wait = min(LONGEST_WAIT, WAIT * 2 ** min(self._in_vain, 10)) if patient else WAIT
        self._not_before = self._clock.monotonic() + wait
        self._in_vain += 1
        # Commits that wait for this producer keep the lock from it: nothing may change by itself.
        at_once = self._config.source.semi_sync and self._in_vain == 1
        level = logging.WARNING if at_once or self._in_vain % WARN_EVERY == 0 else logging.DEBUG
        LOG.log(level, "no round of loads could be opened", extra={"service": self._config.service, "why": reason})

    def postpone(self, table: TableName) -> None:
        """Leave a table that is locked out of the next rounds: the others need not wait for it."""
        self._postponed[table] = self._clock.monotonic() + POSTPONED

    def published(self, rows: int, began: float) -> None:
        """A round is published: the next one waits as its rows demand.

        Args:
            rows: its rows.
            began: when its publication began, on the monotonic clock.
        """
        if (most := self._config.source.snapshot.max_rows_per_second) is not None:
            self._not_before = began + rows / most

    def rest(self) -> None:
        """No load is outstanding, so none pauses."""
        self._note(None)

    def _note(self, pause: LoadPause | None) -> None:
        """Keep the metrics, and log the beginning and the end of a pause."""
        before, self._cause = self._cause, None if pause is None else pause.cause
        fields = {"service": self._config.service}
        if self._cause is before:
            return
        for cause in PauseCause:
            since = self._clock.now() / 1e6 if cause is self._cause else 0
            metrics.load_paused_since.labels(self._config.service, cause).set(since)
        if pause is None:
            if self._pause_logged:
                self._pause_logged = False
                LOG.info("rounds of loads begin again", extra=fields)
            return
        now = self._clock.monotonic()
        if pause.ordinary or now < self._logged_at.get(pause.cause, -LOG_AGAIN_SECONDS) + LOG_AGAIN_SECONDS:
            return
        self._logged_at[pause.cause], self._pause_logged = now, True
        LOG.warning(
            "no round of loads begins", extra={**fields, "cause": pause.cause, "why": pause.why, "remedy": pause.hint}
        )
