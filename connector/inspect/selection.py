"""Which of a source's transactions are printed."""

from __future__ import annotations

from dataclasses import dataclass

from connector.errors import ConfigError
from connector.log.transaction.batch import TransactionEnd, TransactionStart
from connector.log.transaction.position import SourcePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What is wanted; None: no bound. A transaction must be within all of them.

    Args:
        from_position: those that begin there or behind it, in the order of the files.
        to_position: those that begin before it.
        from_gtid: that one and those behind it in the log, whatever their GTIDs are.
        to_gtid: that one and those before it.
        from_time: those that were committed then or later, µs since 1970 UTC.
        to_time: those that were committed before.
        stop_after: as many at most.
    """

    from_position: SourcePosition | None = None
    to_position: SourcePosition | None = None
    from_gtid: str | None = None
    to_gtid: str | None = None
    from_time: int | None = None
    to_time: int | None = None
    stop_after: int | None = None


class Selection:
    """Walks along the log. Files before `from_position` and behind `to_position` are not shown to it.

    Args:
        wanted: what is.
    """

    def __init__(self, wanted: Range) -> None:
        self._wanted = wanted
        self._reached = wanted.from_gtid is None
        self._left = wanted.stop_after
        self._last = False  # the transaction that is being read ends what is wanted
        self._file = ""
        self.over = wanted.stop_after == 0

    def file(self, name: str) -> None:
        """A file begins."""
        self._file = name

    def begins(self, begin: TransactionStart) -> bool:
        """Whether a transaction can be wanted, as far as its beginning tells."""
        if self._last:  # the last one was passed over, because something else did not want it
            self.over = True
            return False
        start, wanted = begin.start.offset, self._wanted
        if wanted.to_position is not None and wanted.to_position.file == self._file:
            self.over = self.over or start >= wanted.to_position.offset
        self._see(begin.gtid)
        if wanted.from_position is not None and wanted.from_position.file == self._file:
            return self._reached and start >= wanted.from_position.offset
        return self._reached

    def ends(self, ending: TransactionEnd) -> bool:
        """Whether one that could be wanted is: its last piece has come."""
        wanted, time = self._wanted, ending.commit_time
        if self._last:
            self.over = True
        if (wanted.from_time is not None and time < wanted.from_time) or (
            wanted.to_time is not None and time >= wanted.to_time
        ):
            return False
        if self._left is not None:
            self._left -= 1
            self.over = self.over or self._left == 0
        return True

    def passes(self, gtid: str | None) -> bool:
        """The source went past something that is not for us; whether more can be wanted."""
        self._see(gtid)
        self.over = self.over or self._last
        return not self.over

    def check(self) -> None:
        """Check, when everything was read, that what was named was met.

        Raises:
            ConfigError: it was not.
        """
        for option, gtid, met in (
            ("--from-gtid", self._wanted.from_gtid, self._reached),
            ("--to-gtid", self._wanted.to_gtid, self._last),
        ):
            if gtid is not None and not met and not self.over:
                raise ConfigError(f"{option}: no transaction of these files has the GTID", gtid=gtid)

    def _see(self, gtid: str | None) -> None:
        if gtid is not None:
            self._reached = self._reached or gtid == self._wanted.from_gtid
            self._last = self._last or gtid == self._wanted.to_gtid
