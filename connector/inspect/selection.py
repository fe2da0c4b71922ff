"""The selection of transactions of binary log files."""

from __future__ import annotations

from dataclasses import dataclass

from connector.errors import ConfigError
from connector.log.transaction.batch import TransactionEnd, TransactionStart
from connector.log.transaction.position import SourcePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionBounds:
    """Bounds of the transactions to print; None: no bound. A transaction must be within all of them.

    Args:
        from_position: begins there or later, in the order of the files.
        to_position: begins before it.
        from_gtid: the transaction with this GTID and all later ones in the log.
        to_gtid: the transaction with this GTID and all earlier ones.
        from_time: committed then or later, µs since 1970 UTC.
        to_time: committed then or earlier.
        stop_after: maximum number.
    """

    from_position: SourcePosition | None = None
    to_position: SourcePosition | None = None
    from_gtid: str | None = None
    to_gtid: str | None = None
    from_time: int | None = None
    to_time: int | None = None
    stop_after: int | None = None


class Selection:
    """Selects transactions in the order of the log. Files outside of the positions are not given to it.

    Args:
        bounds: the bounds. `over` is True once no later transaction can be within them.
    """

    def __init__(self, bounds: SelectionBounds) -> None:
        self._bounds = bounds
        self._reached = bounds.from_gtid is None
        self._left = bounds.stop_after
        self._last = False  # the current transaction is the last within the bounds
        self._file = ""
        self.over = bounds.stop_after == 0

    def file(self, name: str) -> None:
        """Begin a file."""
        self._file = name

    def begins(self, begin: TransactionStart) -> bool:
        """True if a transaction can be within the bounds, as far as its beginning shows."""
        if self._last:  # the last one was not printed: it is outside of another bound
            self.over = True
            return False
        start, bounds = begin.start.offset, self._bounds
        if bounds.to_position is not None and bounds.to_position.file == self._file:
            self.over = self.over or start >= bounds.to_position.offset
        self._see(begin.gtid)
        if bounds.from_position is not None and bounds.from_position.file == self._file:
            return self._reached and start >= bounds.from_position.offset
        return self._reached

    def ends(self, ending: TransactionEnd) -> bool:
        """True if a transaction that has ended is within the bounds."""
        bounds, time = self._bounds, ending.commit_time
        if self._last:
            self.over = True
        if (bounds.from_time is not None and time < bounds.from_time) or (
            bounds.to_time is not None and time > bounds.to_time
        ):
            return False
        if self._left is not None:
            self._left -= 1
            self.over = self.over or self._left == 0
        return True

    def passes(self, gtid: str | None) -> bool:
        """Pass a filtered transaction; False once no later one can be within the bounds."""
        self._see(gtid)
        self.over = self.over or self._last
        return not self.over

    def check(self) -> None:
        """Check at the end of the files that they had the GTIDs of the bounds.

        Raises:
            ConfigError: they had not.
        """
        for option, gtid, found in (
            ("--from-gtid", self._bounds.from_gtid, self._reached),
            ("--to-gtid", self._bounds.to_gtid, self._last),
        ):
            if gtid is not None and not found and not self.over:
                raise ConfigError(f"{option}: no transaction of these files has the GTID", gtid=gtid)

    def _see(self, gtid: str | None) -> None:
        if gtid is not None:
            self._reached = self._reached or gtid == self._bounds.from_gtid
            self._last = self._last or gtid == self._bounds.to_gtid
