"""Reads files of a binary log as batches of transactions, and reports damage.

Each file has its own reader: a transaction never spans files. Errors name file, position and type of the event. With
`salvage`, reading continues at the next transaction after the damage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

from connector.errors import ConnectorError, CorruptBinlog
from connector.log.transaction.definition import Redefined
from connector.log.transaction.xa import Logged, end_of
from connector.mysql.binlog.byte_source import ByteSource
from connector.mysql.binlog.events import event_types
from connector.mysql.binlog.events.capture_filter import CaptureFilter
from connector.mysql.binlog.events.column_names import NumberingResolver
from connector.mysql.binlog.events.event_types import HEADER
from connector.mysql.binlog.frames import EventFrames
from connector.mysql.binlog.log_files import MAGIC, LogBytes, LogFile, not_a_log
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.binlog.salvage import Remains, whole

SERVICE: Final = "binlog"  # label of the metrics of ignored events
TYPE_AT: Final = 4  # of a header


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of a file that was skipped.

    Args:
        file: the file.
        start: end of the last whole transaction.
        end: offset at which reading continued, or the file's size.
        error: the damage.
    """

    file: LogFile
    start: int
    end: int
    error: ConnectorError


@dataclass(frozen=True, slots=True)
class LogReading:
    """Options for reading files.

    Args:
        filters: decide what is captured.
        batch_bytes: encoded bytes of a transaction after which a batch is handed out.
        stdin: standard input.
        salvage: called with each skipped range; None: damage is an error.
        in_use: called with a file whose flag says that its server is writing it, or died while it was.
    """

    filters: CaptureFilter
    batch_bytes: int
    stdin: BinaryIO
    salvage: Callable[[Gap], None] | None = None
    in_use: Callable[[LogFile], None] | None = None


class OffsetSource(ByteSource, Protocol):
    """Bytes of a file, with their offset."""

    @property
    def offset(self) -> int:
        """Offset of the next byte in the file."""


def read_log(file: LogFile, reading: LogReading) -> Iterator[Logged]:
    """Reads a file's transactions in batches.

    With `salvage`, a transaction may lack its end: the next batch begins another one, or none follows.

    Raises:
        ConfigError: the file cannot be opened.
        CorruptBinlog, Unsupported, ValueNotRepresentable: naming file, position and event type.
    """
    if reading.salvage is not None:
        yield from _salvaged(file, reading, reading.salvage)
        return
    with closing(LogBytes(file, reading.stdin)) as source:
        attempt = _FileReading(file, source, reading)
        try:
            yield from attempt.items()
        except ConnectorError as error:
            raise attempt.explained(error) from error


def _salvaged(file: LogFile, reading: LogReading, report: Callable[[Gap], None]) -> Iterator[Logged]:
    with closing(Remains(whole(file, reading.stdin), file.name)) as remains:
        source: OffsetSource | None = remains.start()
        searched = 0
        while source is not None:
            attempt = _FileReading(file, source, reading)
            source = None
            try:
                yield from attempt.items()
            except ConnectorError as error:
                end = remains.next_transaction(max(searched, attempt.offset_of(error) + 1))
                report(Gap(file, attempt.whole, end, attempt.explained(error)))
                searched = end + 1
                source = remains.from_offset(end) if end < remains.size else None


class _FileReading:
    """One reader over a file, from its beginning or from the beginning of a transaction."""

    def __init__(self, file: LogFile, source: OffsetSource, reading: LogReading) -> None:
        self.whole = source.offset  # end of the last whole transaction
        self._file = file
        self._source = source
        self._frames = EventFrames()
        self._salvage = reading.salvage
        self._in_use = reading.in_use
        self._reader = BinlogReader(
            source,
            self._frames,
            filters=reading.filters,
            service=SERVICE,
            batch_bytes=reading.batch_bytes,
            file=file.name,
            resolver=NumberingResolver(),
            leave_out=None if reading.salvage is None else self._left_out,
        )

    def items(self) -> Iterator[Logged]:
        while not self._reader.ended:
            found = self._reader.read()
            if self._reader.in_use and self._in_use is not None:
                self._in_use(self._file)
                self._in_use = None
            for item in found:
                if isinstance(item, Redefined):
                    continue
                yield item
                end = end_of(item)
                if end and end.file == self._file.name:
                    self.whole = end.offset
        if self._source.offset <= len(MAGIC):
            raise CorruptBinlog("the file ends before its format description")

    def offset_of(self, error: ConnectorError) -> int:
        """The offset of the event in an error; without an event, the end of the read bytes."""
        offset, file = error.where.get("pos"), error.where.get("file")
        return offset if isinstance(offset, int) and file == self._file.name and self._read else self._read

    def explained(self, error: ConnectorError) -> ConnectorError:
        """The error with facts of the file: its path, the event's type, whether it is cut off; and a hint that fits."""
        error.hint = error.file_hint
        head, left = self._frames.head, self._frames.left
        where = {"file": self._file, "pos": self.offset_of(error), "event": error.where.get("event")}
        if self._read == 0 and (head or self._reader.ended):
            error = not_a_log(head[: len(MAGIC)]) or error
        elif self._reader.ended and left:
            size = int.from_bytes(head[9:13], "little") if len(head) >= 13 else f"at least {HEADER}"
            error = CorruptBinlog(f"the file ends inside an event: {left} of its {size} bytes are there")
        elif self._reader.ended and self._source.offset > len(MAGIC):
            error = CorruptBinlog("the file ends before its last transaction does")
        elif where["event"] is None and len(head) == HEADER and not any(head):
            error = CorruptBinlog("zeros instead of an event")
        if where["event"] is None and self._read and len(head) > TYPE_AT and any(head):
            where["event"] = event_types.name(head[TYPE_AT])
        error.where = where | {name: value for name, value in error.where.items() if name not in where}
        return error

    def _left_out(self, error: ConnectorError, start: int, size: int) -> None:
        """Reports an event that alone is left out."""
        error.hint = error.file_hint
        error.where = {**error.where, "file": self._file}
        if self._salvage is not None:
            self._salvage(Gap(self._file, start, start + size, error))

    @property
    def _read(self) -> int:
        """Offset up to which the file is cut into events."""
        return self._source.offset - self._frames.left
