"""Waits until a target has everything in a view of the source. Says which process is missing if it does not move."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from connector.clock import Clock
from connector.log.transaction.position import PositionRecord
from connector.log.transaction.source_position import SourcePosition
from connector.verify.source import SourceReader, SourceState
from connector.verify.target import TargetReader, TargetState

POLL_SECONDS: Final = 0.2
QUIET_SECONDS: Final = 2.0  # without progress, before the processes are looked for
NO_PRODUCER: Final = "no producer reads the source's binary log: thl produce"

LOG: Final = logging.getLogger(__name__)


class PublishedLog(Protocol):
    """The log between both ends: it alone knows of transactions that are not captured, which no target ever has."""

    @property
    def idle_seconds(self) -> float:
        """Seconds within which the log's position passes transactions that are not captured."""

    def position(self) -> PositionRecord | None:
        """The log's position; None: it cannot be read."""


def wait(
    source: SourceReader,
    target: TargetReader,
    seen: SourceState,
    *,
    service: str,
    patience: float,
    clock: Clock,
    log: PublishedLog | None = None,
) -> str:
    """Wait until the target has everything in the source's view, or has made no progress for a time.

    The target has it if it has its GTIDs, or the last event of a log that has passed them.

    Args:
        source, target: the two ends.
        seen: the source's view.
        service: the service.
        patience: seconds without progress after which waiting ends.
        clock: the time.
        log: the log; None: only the target is asked.

    Returns:
        Why the target makes no progress; "" if it has everything.
    """
    moved, last, reason = clock.monotonic(), None, ""
    last_event: int | None = None  # of the log when it had passed the view
    while True:
        with target.view(service) as state:
            pass
        if state.consistent and (not _lags(source, seen, state) or _has(state, last_event)):
            return ""
        passing = 0.0
        if last is not None and last_event is None and log is not None and (position := log.position()) is not None:
            if _passed(source, seen, position):
                last_event = position.last_finished
                continue
            passing = log.idle_seconds
        if state != last:
            moved, last, reason = clock.monotonic(), state, ""
        quiet = clock.monotonic() - moved
        if not reason and quiet >= min(QUIET_SECONDS, patience):
            reason = _missing_process(source, target, service)
            fields = {"service": service, "seqno": state.seqno, "why": reason}
            LOG.warning(
                "the target made no progress for %.0f s; it is compared as it is after %.0f s without any",
                *(quiet, patience),
                extra=fields,
            )
        if quiet >= patience + (0.0 if reason == NO_PRODUCER else passing):
            return reason
        clock.sleep(POLL_SECONDS)


def _missing_process(source: SourceReader, target: TargetReader, service: str) -> str:
    if source.read() is False:
        return NO_PRODUCER
    if target.applied(service) is False:
        return "no applier has a session with the target: thl apply"
    if source.read() and target.applied(service):
        return "producer and applier run"
    return "whether producer and applier run is not known: thl status tells how far each is"


def _lags(source: SourceReader, seen: SourceState, state: TargetState) -> bool:
    if seen.gtid_set is not None and state.gtid_set is not None:
        return bool(source.missing(seen.gtid_set, state.gtid_set))
    return _position(state) < seen.position


def _has(state: TargetState, seqno: int | None) -> bool:
    return seqno is not None and state.seqno >= seqno


def _passed(source: SourceReader, seen: SourceState, position: PositionRecord) -> bool:
    """True if the log has everything in the view, or has left it out."""
    if seen.gtid_set is not None and position.gtid_set is not None:
        return not source.missing(seen.gtid_set, position.gtid_set)
    return position.resume >= seen.position


def is_ahead(source: SourceReader, seen: SourceState, state: TargetState) -> bool:
    """Return True if the target has what was committed after the view was opened."""
    if seen.gtid_set is not None and state.gtid_set is not None:
        return bool(source.missing(state.gtid_set, seen.gtid_set))
    return _position(state) > seen.position


def _position(state: TargetState) -> SourcePosition:
    """Return the end of an event by its ID, `file:offset;thread`."""
    file, _, position = state.event_id.partition(";")[0].rpartition(":")
    return SourcePosition(file, int(position or 0))
