"""Reads a log from memory to text, and as raw events for an archive."""

from __future__ import annotations

from itertools import count

from connector.config.filters import Filters
from connector.errors import ConnectorError
from connector.inspect.formats.json_transaction import JsonPrinter
from connector.inspect.formats.tungsten_transaction import TungstenPrinter
from connector.log.ids import Seqno
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.xa import Prepared
from connector.mysql.binlog.events.column_names import NumberingResolver
from connector.mysql.binlog.frames import EventFrames, Frames, PacketFrames
from connector.mysql.binlog.raw import RawEvents
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.transforms.filters import Filter
from tests.fuzz.logs import events

KEEPING = Filter(Filters(), keeps_statements=True, rows_query_bytes=20)
PART = 4096
MAGIC = 4


class Bytes:
    """A log in memory, received in parts."""

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
        """Does nothing."""


def read_whole(data: bytes) -> tuple[list[int], ConnectorError | None]:
    """The ends of the whole transactions, and the error that ended the reading."""
    reader = BinlogReader(
        Bytes(data),
        EventFrames(),
        filters=KEEPING,
        service="t",
        batch_bytes=1 << 16,
        file="f.1",
        resolver=NumberingResolver(),
    )
    printers, ends = (JsonPrinter(), TungstenPrinter()), []
    try:
        while not reader.ended:
            for item in reader.read():
                piece = item.batch if isinstance(item, Prepared) else item
                if not isinstance(piece, TransactionBatch):
                    continue
                for printer in printers:
                    if piece.begin is not None:
                        printer.begin(piece.begin)
                    printer.batch(Seqno(0), piece)
                if piece.ending is not None:
                    ends.append(piece.ending.end.offset)
    except ConnectorError as error:
        return ends, error
    return ends, None


def read_raw(data: bytes) -> ConnectorError | None:
    """Archive a log from a file and from a stream: only whole events are stored, in order.

    Returns:
        What ended it, as a file.

    Raises:
        AssertionError: something else was kept.
    """
    whole = [data[start:end] for start, end in events(data)]
    of_stream, _ = _kept(PacketFrames(), b"".join(map(_packet, whole, count(1))))
    of_file, failure = _kept(EventFrames(), data)
    for kept in (of_stream, of_file):
        left = iter(whole)
        found = [kept[start - MAGIC : end - MAGIC] for start, end in events(bytes(MAGIC) + kept)]
        assert b"".join(found) == kept
        assert all(any(event == one for one in left) for event in found)
    return failure


def _packet(event: bytes, number: int) -> bytes:
    """An event in a packet, as a server sends it."""
    return (len(event) + 1).to_bytes(3, "little") + bytes([number % 256, 0]) + event


def _kept(frames: Frames, sent: bytes) -> tuple[bytes, ConnectorError | None]:
    raw, source, kept = RawEvents(frames, "f.1"), Bytes(sent), b""
    try:
        while frames.receive(source, 0):
            kept += b"".join(part for _, part in raw.drain())
        raw.drain()
    except ConnectorError as error:
        return kept, error
    return kept, None
