"""Prints whole transactions of binary log files, in memory that does not grow with a transaction."""

from __future__ import annotations

import shutil
import tempfile
from typing import IO, BinaryIO, Final, Protocol

from connector.errors import CorruptBinlog
from connector.inspect.selection import Selection
from connector.log.ids import Seqno
from connector.log.transaction.batch import PositionAdvance, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.xa import Decided, Logged, Prepared

IN_MEMORY: Final = 8 << 20  # bytes of a transaction; more are written to a file
LATEST: Final = 253_402_300_800_000_000  # µs since 1970: the year 10000


class Formatter(Protocol):
    """Formats a transaction. Its header is formatted last, because it has facts that are known only at the end."""

    def begin(self, begin: TransactionStart) -> None:
        """Begin a transaction; forget one that has not ended."""

    def batch(self, seqno: Seqno, batch: TransactionBatch, xa: str = "") -> bytes:
        """Format the next batch of the transaction.

        Args:
            seqno: number of the transaction.
            batch: the next changes.
            xa: the state of an XA transaction with the last batch: prepared, commit or rollback; else "".
        """

    def header(self, seqno: Seqno, ending: TransactionEnd, xa: str = "") -> bytes:
        """Format the text before the batches."""

    def footer(self) -> bytes:
        """Format the text after the batches."""

    def end(self) -> bytes:
        """Format the text after the last transaction."""


class TransactionPrinter:
    """Prints the selected transactions, numbered from 0.

    A transaction is held until it has ended. One without an end, because the next begins or the files end, is not
    printed.

    An XA transaction is printed at its prepare, with its changes, and again at its commit or rollback, without them:
    prepare and commit may be in different files, of which only some are read.

    Args:
        printer: formats them.
        selection: selects them.
        out: receives the text.
    """

    def __init__(self, printer: Formatter, selection: Selection, out: BinaryIO) -> None:
        self._printer = printer
        self._selection = selection
        self._out = out
        self._spool = Spool()
        self._selected = False
        self.printed = 0
        self.prepared: dict[str, TransactionStart] = {}  # xid → a prepared transaction that is not decided
        self._preparing: TransactionStart | None = None

    def accept(self, item: Logged) -> bool:
        """Accept the next item of the files.

        Returns:
            False once no later transaction can be selected.
        """
        if isinstance(item, PositionAdvance):
            return self._selection.passes(item.gtid)
        xa = ""
        match item:
            case Prepared():
                xa, item = self._prepared(item), item.batch
            case Decided():
                self.prepared.pop(item.xid, None)
                xa, item = item.ending.outcome.name.lower(), TransactionBatch(item.begin, [], item.ending)
        if item.begin is not None:
            self._spool.clear()
            self._selected = self._selection.begins(item.begin)
            if self._selection.over:
                return False
            self._printer.begin(item.begin)
        if item.ending is not None and not 0 <= item.ending.commit_time < LATEST:
            end = item.ending.end
            raise CorruptBinlog("a transaction's commit time is impossible", file=end.file, before=end.offset)
        seqno = Seqno(self.printed)
        if self._selected:
            self._spool.write(self._printer.batch(seqno, item, xa))
        if item.ending is None:
            return True
        if self._selected and self._selection.ends(item.ending):
            self._out.write(self._printer.header(seqno, item.ending, xa))
            self._spool.write(self._printer.footer())
            self._spool.pour(self._out)
            self.printed += 1
        return not self._selection.over

    def end(self) -> bytes:
        """The text after the last transaction."""
        return self._printer.end()

    def _prepared(self, item: Prepared) -> str:
        """Remember an XA transaction whose prepare ends with this batch; returns its state."""
        begin = self._preparing = item.batch.begin or self._preparing
        if item.batch.ending is None or item.one_phase or begin is None:
            return ""
        self.prepared[item.xid] = begin
        return "prepared"


class Spool:
    """Holds text of any size in bounded memory; reused for each transaction."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def write(self, text: bytes) -> None:
        """Add text."""
        self._chunks.append(text)
        self._size += len(text)
        if self._size > IN_MEMORY:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it lives until `clear`)
            self._file.writelines(self._chunks)
            self._chunks.clear()
            self._size = 0

    def pour(self, out: BinaryIO) -> None:
        """Write the held text to `out`, and forget it."""
        if self._file is not None:
            self._file.seek(0)
            shutil.copyfileobj(self._file, out, 1 << 20)
        out.write(b"".join(self._chunks))
        self.clear()

    def clear(self) -> None:
        """Forget the held text."""
        self._chunks.clear()
        self._size = 0
        if self._file is not None:
            self._file.close()
            self._file = None
