"""A log from memory through the reader and into text."""

from __future__ import annotations

from connector.capture.filters import Filter
from connector.capture.frames import EventFrames
from connector.capture.naming import Numbered
from connector.capture.reader import BinlogReader
from connector.config import Filters
from connector.errors import ConnectorError
from connector.listing.json_event import JsonPrinter
from connector.thl.piece import Piece
from connector.thl.words import Seqno

KEEPING = Filter(Filters(), keeps_statements=True)
PART = 4096


class Bytes:
    """A log in memory, given in parts."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def receive(self, into: memoryview, timeout: float) -> int:
        del timeout
        part = self._data[self._at : self._at + min(len(into), PART)]
        into[: len(part)] = part
        self._at += len(part)
        return len(part)

    def close(self) -> None:
        """Nothing is held."""


def read_whole(data: bytes) -> tuple[list[int], ConnectorError | None]:
    """Where the transactions end that came whole, and what ended the reading."""
    reader = BinlogReader(
        Bytes(data), EventFrames(), filters=KEEPING, service="t", piece_bytes=1 << 16, file="f.1", naming=Numbered()
    )
    printer, ends = JsonPrinter(), []
    try:
        while not reader.ended:
            for item in reader.read():
                if isinstance(item, Piece):
                    if item.begin is not None:
                        printer.begin(item.begin)
                    printer.piece(Seqno(0), item)
                    if item.ending is not None:
                        ends.append(item.ending.end.offset)
    except ConnectorError as error:
        return ends, error
    return ends, None
