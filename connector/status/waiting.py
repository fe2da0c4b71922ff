"""Waiting until a target has an event: by what the target itself says, whoever applies to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from connector.clock import Clock
from connector.errors import ConfigError, ConnectorError, TimedOut
from connector.log.gtid.source_gtids import lacking, parse_gtids
from connector.log.ids import NO_SEQNO
from connector.status.target import TargetRow

LOOK: Final = 0.2  # seconds between looks


class Want(Protocol):
    """What a target may be waited for to have."""

    @property
    def told(self) -> object:
        """It, for messages."""

    def reached(self, row: TargetRow | None) -> bool:
        """Whether a target that is there has it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the target is to have.

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

    def reached(self, row: TargetRow | None) -> bool:
        """Whether the target has it.

        Raises:
            ConfigError: the source has no GTIDs that could be compared.
            HistoriesDiffer: it has others: MariaDB's, or MySQL's.
        """
        if row is None or row.seqno == NO_SEQNO:
            return False
        if self.seqno is not None:
            return row.seqno >= self.seqno
        if row.gtid_set is None:
            raise ConfigError("the source of this target has no GTIDs", hint="wait for a seqno", seqno=row.seqno)
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

    def reached(self, row: TargetRow | None) -> bool:
        """Whether the target has it, and all before it: in an initial load rows come one after the other."""
        if row is None or not row.consistent:
            return False
        written = self.newest()
        return written is not None and (self.since is None or written >= self.since)


def wait_for(wanted: Want, read: Callable[[], TargetRow | None], clock: Clock, timeout: float | None) -> TargetRow:
    """Wait.

    Args:
        wanted: for what.
        read: asks the target; while it does not answer, it has not reached anything.
        clock: to look at.
        timeout: seconds; None: for ever.

    Returns:
        The target's position.

    Raises:
        TimedOut: it has not come so far.
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
            raise TimedOut(
                f"the target did not come so far within {timeout:g} s" + (f": {why.message}" if why else ""),
                wanted=wanted.told,
                applied=row.seqno if row else None,
            )
        clock.sleep(LOOK)
