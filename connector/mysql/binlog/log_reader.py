"""Files of a binary log as pieces of transactions, and what is told of a file that is damaged.

Each file is read by a reader of its own: a server ends a transaction in the file that it began it in. Whatever is
wrong is told with file, place and type of the event. A reader that is asked to salvage goes on at the next
transaction that begins behind the damage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

from connector.errors import ConnectorError, CorruptBinlog
from connector.log.transaction.definition import Redefined
from connector.log.transaction.xa import Logged, end_of
from connector.mysql.binlog.events import event_types
from connector.mysql.binlog.events.capture_filter import CaptureFilter
from connector.mysql.binlog.frames import EventFrames
from connector.mysql.binlog.log_files import MAGIC, LogBytes, LogFile, not_a_log
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.binlog.salvage import Remains, whole
from connector.mysql.schema_history.column_names import NumberingResolver
from connector.mysql.server.dump import ByteSource

SERVICE: Final = "binlog"  # under which ignored events are counted
HEADER: Final = 19
TYPE_AT: Final = 4  # of a header


@dataclass(frozen=True, slots=True)
class Gap:
    """What was left out of a file.

    Args:
        file: which.
        start: where the last transaction that is whole ends.
        end: where reading went on, or the file ends.
        error: what was wrong.
    """

    file: LogFile
    start: int
    end: int
    error: ConnectorError


@dataclass(frozen=True, slots=True)
class LogReading:
    """How files are read.

    Args:
        filters: which schemas and tables are for us.
        batch_bytes: encoded bytes of a transaction after which a piece is handed out.
        stdin: standard input.
        salvage: told of what is left out; None: damage is an error.
    """

    filters: CaptureFilter
    batch_bytes: int
    stdin: BinaryIO
    salvage: Callable[[Gap], None] | None = None


class PlacedSource(ByteSource, Protocol):
    """Bytes of a file that knows where in the file it is."""

    @property
    def place(self) -> int:
        """The offset in the file of the byte that comes next."""


def read_log(file: LogFile, reading: LogReading) -> Iterator[Logged]:
    """A file's transactions in pieces.

    With `salvage`, a transaction that has begun may end without an ending: the next piece then begins another one,
    or none follows.

    Raises:
        ConfigError: the file cannot be opened.
        CorruptBinlog, Unsupported, ValueNotRepresentable: naming file, position and event type.
    """
    if reading.salvage is not None:
        yield from _salvaged(file, reading, reading.salvage)
        return
    with closing(LogBytes(file, reading.stdin)) as source:
        attempt = _Attempt(file, source, reading)
        try:
            yield from attempt.items()
        except ConnectorError as error:
            raise attempt.explained(error) from error


def _salvaged(file: LogFile, reading: LogReading, tell: Callable[[Gap], None]) -> Iterator[Logged]:
    with closing(Remains(whole(file, reading.stdin), file.name)) as remains:
        source: PlacedSource | None = remains.start()
        searched = 0
        while source is not None:
            attempt = _Attempt(file, source, reading)
            source = None
            try:
                yield from attempt.items()
            except ConnectorError as error:
                end = remains.next_transaction(max(searched, attempt.place_of(error) + 1))
                tell(Gap(file, attempt.whole, end, attempt.explained(error)))
                searched = end + 1
                source = remains.behind(end) if end < remains.size else None


class _Attempt:
    """One reader over a file, from its beginning or from a place where a transaction begins."""

    def __init__(self, file: LogFile, source: PlacedSource, reading: LogReading) -> None:
        self.whole = source.place  # behind the last transaction that is whole
        self._file = file
        self._source = source
        self._frames = EventFrames()
        self._reader = BinlogReader(
            source,
            self._frames,
            filters=reading.filters,
            service=SERVICE,
            batch_bytes=reading.batch_bytes,
            file=file.name,
            resolver=NumberingResolver(),
        )

    def items(self) -> Iterator[Logged]:
        while not self._reader.ended:
            for item in self._reader.read():
                if isinstance(item, Redefined):
                    continue
                yield item
                end = end_of(item)
                if end and end.file == self._file.name:
                    self.whole = end.offset
        if self._source.place <= len(MAGIC):
            raise CorruptBinlog("the file ends before its format description")

    def place_of(self, error: ConnectorError) -> int:
        """Where the event begins that an error is about; behind what was read, if it is about none."""
        place, file = error.where.get("pos"), error.where.get("file")
        return place if isinstance(place, int) and file == self._file.name and self._read else self._read

    def explained(self, error: ConnectorError) -> ConnectorError:
        """The error with what the file itself tells: its path, the event's type, and whether it is cut off."""
        head, left = self._frames.head, self._frames.left
        where = {"file": self._file, "pos": self.place_of(error), "event": error.where.get("event")}
        if self._read == 0 and (head or self._reader.ended):
            error = not_a_log(head[: len(MAGIC)]) or error
        elif self._reader.ended and left:
            size = int.from_bytes(head[9:13], "little") if len(head) >= 13 else f"at least {HEADER}"
            error = CorruptBinlog(f"the file ends inside an event: {left} of its {size} bytes are there")
        elif self._reader.ended and self._source.place > len(MAGIC):
            error = CorruptBinlog("the file ends before its last transaction does")
        elif where["event"] is None and len(head) == HEADER and not any(head):
            error = CorruptBinlog("zeros stand where an event should begin")
        if where["event"] is None and self._read and len(head) > TYPE_AT and any(head):
            where["event"] = event_types.name(head[TYPE_AT])
        error.where = where | {name: value for name, value in error.where.items() if name not in where}
        return error

    @property
    def _read(self) -> int:
        """Up to where the file is cut into events."""
        return self._source.place - self._frames.left
