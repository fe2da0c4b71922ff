"""Waits until a target has everything in a view of the source. Says which process is missing if it does not move."""

from __future__ import annotations

import logging
from typing import Final

from connector.clock import Clock
from connector.verify.source import SourceReader, SourceState
from connector.verify.target import TargetReader, TargetState

POLL_SECONDS: Final = 0.2
QUIET_SECONDS: Final = 2.0  # without progress, before the processes are looked for

LOG: Final = logging.getLogger(__name__)


def wait(
    source: SourceReader, target: TargetReader, seen: SourceState, *, service: str, patience: float, clock: Clock
) -> str:
    """Wait until the target has everything in the source's view, or has made no progress for a time.

    Args:
        source, target: the two ends.
        seen: the source's view.
        service: the service.
        patience: seconds without progress after which waiting ends.
        clock: the time.

    Returns:
        Why the target makes no progress; "" if it has everything.
    """
    moved, last, reason = clock.monotonic(), None, ""
    while True:
        with target.view(service) as state:
            pass
        if state.consistent and not _lags(source, seen, state):
            return ""
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
        if quiet >= patience:
            return reason
        clock.sleep(POLL_SECONDS)


def _missing_process(source: SourceReader, target: TargetReader, service: str) -> str:
    if source.read() is False:
        return "no producer reads the source's binary log: thl produce"
    if target.applied(service) is False:
        return "no applier has a session with the target: thl apply"
    if source.read() and target.applied(service):
        return "producer and applier run"
    return "whether producer and applier run is not known: thl status tells how far each is"


def _lags(source: SourceReader, seen: SourceState, state: TargetState) -> bool:
    if seen.gtid_set is not None and state.gtid_set is not None:
        return bool(source.missing(seen.gtid_set, state.gtid_set))
    return _position(state) < (seen.position.file, seen.position.offset)


def at_same_position(source: SourceReader, seen: SourceState, state: TargetState) -> bool:
    """Return True if source and target are at the same position."""
    if seen.gtid_set is not None and state.gtid_set is not None:
        return not source.missing(seen.gtid_set, state.gtid_set) and not source.missing(state.gtid_set, seen.gtid_set)
    return _position(state) == (seen.position.file, seen.position.offset)


def _position(state: TargetState) -> tuple[str, int]:
    """Return file and offset of an event ID, `file:offset;thread`."""
    file, _, position = state.event_id.partition(";")[0].rpartition(":")
    return file, int(position or 0)
