"""Reads a log from memory to text, as SQL, event by event, and as raw events for an archive."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

from connector.config.filters import Filters
from connector.errors import ConnectorError
from connector.inspect.binlog_events.fields import EventFields
from connector.inspect.binlog_events.printing import EventChoice, EventPrinter
from connector.inspect.binlog_events.walk import walk
from connector.inspect.formats.json_transaction import JsonPrinter
from connector.inspect.formats.sql_transaction import SqlPrinter
from connector.inspect.formats.tungsten_transaction import TungstenPrinter
from connector.inspect.selection import Selection, SelectionBounds
from connector.inspect.transactions import TransactionPrinter
from connector.log.ids import Seqno
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.xa import Prepared
from connector.mysql.binlog.events.column_names import NumberingResolver
from connector.mysql.binlog.frames import EventFrames, Frames, PacketFrames
from connector.mysql.binlog.log_files import LogFile
from connector.mysql.binlog.log_reader import Gap, LogReading, read_log
from connector.mysql.binlog.raw import RawEvents
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.transforms.filters import Filter
from tests.fuzz.logs import events

KEEPING = Filter(Filters(), keeps_statements=True, rows_query_bytes=20)
REPLAYING = Filter(Filters(), keeps_statements=True, rows_query_bytes=20, system_schemas=True, replays=True)
PRINTING = Filter(Filters(), keeps_statements=True, rows_query_bytes=20, system_schemas=True)
STDIN = LogFile(None, "f.1")
PART = 4096
LARGEST = 1 << 20
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


def read_sql(data: bytes) -> ConnectorError | None:
    """Print a log as SQL, as it is and with `--salvage`.

    Returns:
        What ended it without `--salvage`.
    """
    error = _sql(data, None)
    gaps: list[Gap] = []
    rest = _sql(data, gaps.append)
    assert rest is None or error is not None, rest
    return error


def _sql(data: bytes, salvage: Callable[[Gap], None] | None) -> ConnectorError | None:
    with tempfile.TemporaryDirectory() as folder:
        printer = TransactionPrinter(SqlPrinter(Path(folder), gtids=False), Selection(SelectionBounds()), io.BytesIO())
        reading = LogReading(REPLAYING, PART, io.BufferedReader(io.BytesIO(data)), salvage)  # type: ignore[arg-type]
        try:
            for item in read_log(STDIN, reading):
                printer.accept(item)
            printer.end()
        except ConnectorError as error:
            assert error.message
            return error
    return None


def read_events(data: bytes) -> ConnectorError | None:
    """Print every event with its fields, as it is and with `--salvage`.

    Returns:
        What ended it without `--salvage`.
    """
    found = None
    for as_json, leave_out in ((True, None), (False, lambda *_: None)):
        out = io.BytesIO()
        printer = EventPrinter(EventFields(PRINTING), EventChoice(), out, as_json=as_json, leave_out=leave_out)
        stdin = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
        try:
            printer.accept(walk(STDIN, stdin, LARGEST, leave_out=leave_out))
        except ConnectorError as error:
            assert "pos" in error.where, error
            found = error if leave_out is None else found
        if as_json:
            for line in out.getvalue().splitlines():
                json.loads(line)
    return found


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
