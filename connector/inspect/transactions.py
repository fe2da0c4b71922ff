"""Prints a source's transactions, whole ones only, in memory that does not grow with a transaction."""

from __future__ import annotations

from typing import BinaryIO, Final, Protocol

from connector.errors import CorruptBinlog
from connector.inspect.selection import Selection
from connector.inspect.spool import Spool
from connector.log.ids import Seqno
from connector.log.transaction.batch import PositionAdvance, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.xa import Decided, Logged, Prepared

LATEST: Final = 253_402_300_800_000_000  # µs since 1970: the year 10000


class Printer(Protocol):
    """How a transaction looks.

    What comes before its changes is asked for last: it says what is known only at the end.
    """

    def begin(self, begin: TransactionStart) -> None:
        """A transaction begins; one that has not ended is forgotten."""

    def piece(self, seqno: Seqno, piece: TransactionBatch, xa: str = "") -> bytes:
        """What is to be printed of its next piece.

        Args:
            seqno: its number.
            piece: it.
            xa: with the last piece, what became of an XA transaction here: prepared, commit or rollback; else "".
        """

    def head(self, seqno: Seqno, ending: TransactionEnd, xa: str = "") -> bytes:
        """What stands before the pieces."""

    def tail(self) -> bytes:
        """What stands behind them."""


class Transactions:
    """Prints those that are wanted, numbered from 0.

    A transaction is held back until it has ended. One that never ends, because the next begins or nothing comes any
    more, is not printed.

    An XA transaction is printed where it was prepared, with its changes, and again where it was committed or rolled
    back, without them: that may be in files that nobody gave us, and what these files hold is shown in any case.

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
        self.prepared: dict[str, TransactionStart] = {}  # by their xids, those that were not decided yet
        self._preparing: TransactionStart | None = None

    def take(self, item: Logged) -> bool:
        """Take what comes next of the source.

        Returns:
            Whether there is more to be wanted.
        """
        if isinstance(item, PositionAdvance):
            return self._selection.passes(item.gtid)
        xa = ""
        match item:
            case Prepared():
                xa, item = self._prepared(item), item.piece
            case Decided():
                self.prepared.pop(item.xid, None)
                xa, item = item.ending.outcome.name.lower(), TransactionBatch(item.begin, [], item.ending)
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
            self._spool.write(self._printer.piece(seqno, item, xa))
        if item.ending is None:
            return True
        if self._wanted and self._selection.ends(item.ending):
            self._out.write(self._printer.head(seqno, item.ending, xa))
            self._spool.write(self._printer.tail())
            self._spool.pour(self._out)
            self.printed += 1
        return not self._selection.over

    def _prepared(self, item: Prepared) -> str:
        """Remember an XA transaction that ends with this piece, and is to be decided; returns what became of it."""
        begin = self._preparing = item.piece.begin or self._preparing
        if item.piece.ending is None or item.one_phase or begin is None:
            return ""
        self.prepared[item.xid] = begin
        return "prepared"
