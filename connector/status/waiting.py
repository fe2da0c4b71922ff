"""Waits until a target has an event, by the target's own position; or until the log on Kafka has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from connector.clock import Clock
from connector.errors import ConfigError, ConnectorError, TimedOut
from connector.log.gtid.source_gtids import lacking, parse_gtids
from connector.log.ids import NO_SEQNO
from connector.log.transaction.position import PositionRecord

LOOK: Final = 0.2  # seconds between looks


class Progress(Protocol):
    """How far a target, or the log, is: all events up to `seqno` are there."""

    @property
    def seqno(self) -> int:
        """The last event; NO_SEQNO before the first."""

    @property
    def event_id(self) -> str:
        """Its position in the source's binary log."""

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
        """By the producer's position; None before the first event."""
        if position is None or position.finished is None:
            return None
        finished = position.finished
        return cls(finished.seqno, finished.event_id, position.gtid_set, not position.snapshot)


class Want(Protocol):
    """A condition that is waited for."""

    @property
    def told(self) -> object:
        """It, for messages."""

    def reached(self, row: Progress | None) -> bool:
        """True once it holds."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An event, by seqno or GTIDs.

    Args:
        seqno: an event, and all before it; None when GTIDs say it.
        gtids: of transactions, as the source writes them; "" when a seqno says it.
    """

    seqno: int | None
    gtids: str = ""

    @classmethod
    def parse(cls, text: str) -> Wanted:
        """Read a seqno, a GTID or a set of them.

        Raises:
            Unsupported: it is neither.
        """
        text = text.strip()
        if text.isascii() and text.isdecimal():
            return cls(int(text))
        return cls(None, str(parse_gtids(text)))

    @property
    def told(self) -> object:
        """It, for messages."""
        return self.gtids if self.seqno is None else self.seqno

    def reached(self, row: Progress | None) -> bool:
        """True once the event and all before it are there.

        Raises:
            ConfigError: the source has no GTIDs that could be compared.
            HistoriesDiffer: it has others: MariaDB's, or MySQL's.
        """
        if row is None or row.seqno == NO_SEQNO:
            return False
        if self.seqno is not None:
            return row.seqno >= self.seqno
        if row.gtid_set is None:
            raise ConfigError("the source has no GTIDs", hint="thl wait --to-seqno N", seqno=row.seqno)
        return not lacking(self.gtids, row.gtid_set)


@dataclass(frozen=True, slots=True)
class WantedHeartbeat:
    """A heartbeat.

    Args:
        name: its name.
        since: when it was written at the earliest, µs since 1970 by the source's clock; None: whenever.
        newest: asks the target when the newest of that name was written; None: it has none.
    """

    name: str
    since: int | None
    newest: Callable[[], int | None]

    @property
    def told(self) -> object:
        """It, for messages."""
        return self.name

    def reached(self, row: Progress | None) -> bool:
        """True once the target has it and all before it; not during an initial load, whose rows have no order."""
        if row is None or not row.consistent:
            return False
        written = self.newest()
        return written is not None and (self.since is None or written >= self.since)


def wait_for(
    wanted: Want, read: Callable[[], Progress | None], clock: Clock, timeout: float | None, *, end: str = "target"
) -> Progress:
    """Wait until a condition holds.

    Args:
        wanted: the condition.
        read: reads the target's position, or the log's; while that fails with an error to retry, nothing is reached.
        clock: the time.
        timeout: seconds; None: without end.
        end: "target" or "log", for the message.

    Returns:
        The position at which the condition held.

    Raises:
        TimedOut: the condition did not hold in time.
        ConfigError, HistoriesDiffer: it never can.
    """
    began = clock.monotonic()
    while True:
        row, why = None, None
        try:
            row = read()
        except ConnectorError as error:
            if not error.retry:
                raise
            why = error
        if row is not None and wanted.reached(row):
            return row
        if timeout is not None and clock.monotonic() - began >= timeout:
            last = row.seqno if row else None
            raise TimedOut(
                f"the {end} did not come so far within {timeout:g} s" + (f": {why.message}" if why else ""),
                wanted=wanted.told,
                applied=last if end == "target" else None,
                written=last if end == "log" else None,
            )
        clock.sleep(LOOK)
