"""Waits until a target has an event, by the target's position, or until the log on Kafka has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from connector.clock import Clock
from connector.errors import ConfigError, ConnectorError, TimedOut
from connector.log.gtid.source_gtids import lacking, parse_gtids
from connector.log.ids import NO_SEQNO
from connector.log.transaction.position import PositionRecord

POLL_SECONDS: Final = 0.2


class ReachedPosition(Protocol):
    """The progress of a target or of the log: all events up to `seqno` are there."""

    @property
    def seqno(self) -> int:
        """The last event; NO_SEQNO before the first."""

    @property
    def event_id(self) -> str:
        """The last event's position in the source's binary log."""

    @property
    def gtid_set(self) -> str | None:
        """The source's transactions that are there or were passed over; None where the source has no GTIDs."""

    @property
    def consistent(self) -> bool:
        """False during an initial load."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of the log, as far as events are finished."""

    seqno: int
    event_id: str
    gtid_set: str | None
    consistent: bool

    @classmethod
    def of(cls, position: PositionRecord | None) -> LogEnd | None:
        """Return the end by the producer's position; None before the first event."""
        if position is None or position.finished is None:
            return None
        finished = position.finished
        return cls(finished.seqno, finished.event_id, position.gtid_set, not position.snapshot)


class Condition(Protocol):
    """A condition that is waited for."""

    @property
    def shown(self) -> object:
        """The condition for messages."""

    def reached(self, row: ReachedPosition | None) -> bool:
        """True once it holds."""


@dataclass(frozen=True, slots=True)
class EventReached:
    """The condition that an event is there, by seqno or GTIDs.

    Args:
        seqno: the event's; None if GTIDs are given.
        gtids: the GTIDs of transactions, as the source writes them; "" if a seqno is given.
    """

    seqno: int | None
    gtids: str = ""

    @classmethod
    def parse(cls, text: str) -> EventReached:
        """Read a seqno, a GTID or a set of them.

        Raises:
            Unsupported: the text is neither.
        """
        text = text.strip()
        if text.isascii() and text.isdecimal():
            return cls(int(text))
        return cls(None, str(parse_gtids(text)))

    @property
    def shown(self) -> object:
        """The condition for messages."""
        return self.gtids if self.seqno is None else self.seqno

    def reached(self, row: ReachedPosition | None) -> bool:
        """True once the event and all before it are there.

        Raises:
            ConfigError: the source has no GTIDs.
            HistoriesDiffer: the source has GTIDs of the other kind, MariaDB's or MySQL's.
        """
        if row is None or row.seqno == NO_SEQNO:
            return False
        if self.seqno is not None:
            return row.seqno >= self.seqno
        if row.gtid_set is None:
            raise ConfigError("the source has no GTIDs", hint="thl wait --to-seqno N", seqno=row.seqno)
        return not lacking(self.gtids, row.gtid_set)


@dataclass(frozen=True, slots=True)
class HeartbeatReached:
    """The condition that a heartbeat is there.

    Args:
        name: name of the heartbeat.
        since: earliest time of its writing, µs since 1970 UTC by the source's clock; None: any.
        newest: reads the time of the newest one of that name from the target; None: there is none.
    """

    name: str
    since: int | None
    newest: Callable[[], int | None]

    @property
    def shown(self) -> object:
        """The condition for messages."""
        return self.name

    def reached(self, row: ReachedPosition | None) -> bool:
        """True once the target has it and all before it; not during an initial load, whose rows have no order."""
        if row is None or not row.consistent:
            return False
        written = self.newest()
        return written is not None and (self.since is None or written >= self.since)


def wait_for(
    condition: Condition,
    read: Callable[[], ReachedPosition | None],
    clock: Clock,
    timeout: float | None,
    *,
    end: str = "target",
) -> ReachedPosition:
    """Wait until a condition holds.

    Args:
        condition: the condition.
        read: reads the target's position, or the log's; a retryable error counts as no progress.
        clock: the time.
        timeout: seconds; None: unlimited.
        end: "target" or "log", for the message.

    Returns:
        The position at which the condition held.

    Raises:
        TimedOut: the condition did not hold in time.
        ConfigError, HistoriesDiffer: the condition cannot hold.
    """
    began = clock.monotonic()
    while True:
        row, reason = None, None
        try:
            row = read()
        except ConnectorError as error:
            if not error.retry:
                raise
            reason = error
        if row is not None and condition.reached(row):
            return row
        if timeout is not None and clock.monotonic() - began >= timeout:
            last = row.seqno if row else None
            raise TimedOut(
                f"the {end} has not reached the event within {timeout:g} s" + (f": {reason.message}" if reason else ""),
                waited_for=condition.shown,
                applied=last if end == "target" else None,
                written=last if end == "log" else None,
            )
        clock.sleep(POLL_SECONDS)
