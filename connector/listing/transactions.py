"""Prints a source's transactions, whole ones only, in memory that does not grow with a transaction."""

from __future__ import annotations

from typing import BinaryIO, Final, Protocol

from connector.errors import CorruptBinlog
from connector.listing.selection import Selection
from connector.listing.spool import Spool
from connector.thl.piece import Begin, Ending, Passed, Piece
from connector.thl.words import Seqno

LATEST: Final = 253_402_300_800_000_000  # µs since 1970: the year 10000


class Printer(Protocol):
    """How a transaction looks.

    What comes before its changes is asked for last: it says what is known only at the end.
    """

    def begin(self, begin: Begin) -> None:
        """A transaction begins; one that has not ended is forgotten."""

    def piece(self, seqno: Seqno, piece: Piece) -> bytes:
        """What is to be printed of its next piece."""

    def head(self, seqno: Seqno, ending: Ending) -> bytes:
        """What stands before the pieces."""

    def tail(self) -> bytes:
        """What stands behind them."""


class Transactions:
    """Prints those that are wanted, numbered from 0.

    A transaction is held back until it has ended. One that never ends, because the next begins or nothing comes any
    more, is not printed.

    Args:
        printer: how.
        selection: which.
        out: where to.
    """

    def __init__(self, printer: Printer, selection: Selection, out: BinaryIO) -> None:
        self._printer = printer
        self._selection = selection
        self._out = out
        self._spool = Spool()
        self._wanted = False
        self.printed = 0

    def take(self, item: Piece | Passed) -> bool:
        """Take what comes next of the source.

        Returns:
            Whether there is more to be wanted.
        """
        if isinstance(item, Passed):
            return self._selection.passes(item.gtid)
        if item.begin is not None:
            self._spool.clear()
            self._wanted = self._selection.begins(item.begin)
            if self._selection.over:
                return False
            self._printer.begin(item.begin)
        if item.ending is not None and not 0 <= item.ending.commit_time < LATEST:
            end = item.ending.end
            raise CorruptBinlog("a transaction's commit time is no time", file=end.file, before=end.offset)
        seqno = Seqno(self.printed)
        if self._wanted:
            self._spool.write(self._printer.piece(seqno, item))
        if item.ending is None:
            return True
        if self._wanted and self._selection.ends(item.ending):
            self._out.write(self._printer.head(seqno, item.ending))
            self._spool.write(self._printer.tail())
            self._spool.pour(self._out)
            self.printed += 1
        return not self._selection.over
