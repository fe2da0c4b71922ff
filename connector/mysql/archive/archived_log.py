"""Reads a binary log from an archive first, then from the server's stream, if the server has purged its beginning.

With GTIDs, reading begins with the newest archived file that lacks nothing, and skips known transactions; without, at
file and offset. Files that are archived meanwhile are read, too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Final, Protocol

from connector.errors import ConnectorError, CorruptBinlog, PreflightError
from connector.log.gtid.mariadb import DomainPosition
from connector.log.gtid.mysql import GtidSet
from connector.log.gtid.source_gtids import Gtids, parse_gtids
from connector.log.rules import NEW_LOG
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.definition import Item, Redefined
from connector.log.transaction.position import AfterGtids, Finished, StreamStart
from connector.log.transaction.source_position import SourcePosition, file_number
from connector.log.transaction.xa import Prepared
from connector.mysql.binlog.byte_source import ByteSource
from connector.mysql.binlog.events.event_types import HEADER, MARIADB_GTID_LIST, PREVIOUS_GTIDS
from connector.mysql.binlog.events.mariadb import gtid_list
from connector.mysql.binlog.frames import EventFrames
from connector.mysql.binlog.log_files import MAGIC, LogBytes, LogFile
from connector.mysql.binlog.raw import RawEvents
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.binlog.salvage import Remains, whole
from connector.mysql.server.gtid_set import decode_gtid_set

START_V3: Final = b"\1"  # the first event of logs before MySQL 5.0
TYPE_AT: Final = len(MAGIC) + 4
SERVER_ID: Final = slice(TYPE_AT + 1, TYPE_AT + 5)

Open = Callable[[ByteSource, LogFile, Gtids | None], BinlogReader]
"""Makes a reader of a file's bytes; rows of transactions with these GTIDs need not be decoded."""

Live = Callable[[StreamStart], BinlogReader]
"""Opens the server's stream."""


class Files(Protocol):
    """Files of one binary log."""

    def files(self) -> list[LogFile]:
        """The files present now, oldest first."""


class ArchivedLog:
    """A log that begins in an archive.

    Args:
        archive: the files.
        start: the start, as requested from a server.
        first: the first file to read, from `covering`.
        open_file, live: make the readers; without `live` the log ends with the files.

    Raises:
        ConfigError: the archive cannot be read, or lacks files in the middle.
        CorruptBinlog: a file's beginning is damaged.
    """

    def __init__(self, archive: Files, start: StreamStart, first: LogFile, open_file: Open, live: Live | None) -> None:
        self._archive = archive
        self._open_file = open_file
        self._live = live
        # Known from the start; `_seen` also has what is read.
        self._known_gtids = parse_gtids(start.gtid_set) if isinstance(start, AfterGtids) else None
        self._seen = parse_gtids(start.gtid_set) if isinstance(start, AfterGtids) else None
        self._left_out = False  # the current transaction is known
        self._gtid: str | None = None  # of the current transaction
        self._reader: BinlogReader | None = None
        self._file: LogFile | None = None
        self.ended = False
        self._begin(first, start.offset if isinstance(start, SourcePosition) else len(MAGIC))

    def read(self, timeout: float) -> list[Item]:
        """Reads what has arrived since the last call, as `BinlogReader.read`.

        Raises:
            Purged: the source no longer has what follows the archive.
            ConnectorError: see `BinlogReader.read`.
        """
        if self._reader is None:
            return []
        found = self._reader.read(timeout)
        if self._file is None:
            return found
        kept = [item for item in found if not self._known(item)]
        if self._reader.ended:
            self._next(self._file)
        return kept

    def close(self) -> None:
        """Closes the current reader. May be repeated."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _begin(self, file: LogFile, offset: int) -> None:
        source: ByteSource = LogBytes(file) if offset == len(MAGIC) else _FileTail(file, offset)
        try:
            self._reader = self._open_file(source, file, self._known_gtids)
        except BaseException:
            source.close()
            raise
        self._file = file

    def _next(self, file: LogFile) -> None:
        """Opens the next archived file, without one the server's stream."""
        self.close()
        number = file_number(file.name) + 1
        following = [found for found in self._archive.files() if file_number(found.name) == number]
        if following:
            self._begin(following[0], len(MAGIC))
            return
        self._file = None
        if self._live is None:
            self.ended = True
            return
        next_file = SourcePosition(f"{file.name.rpartition('.')[0]}.{number:06}", len(MAGIC))
        self._reader = self._live(next_file if self._seen is None else AfterGtids(str(self._seen)))

    def _known(self, item: Item) -> bool:
        """True if the log has it already; if not, notes its GTID."""
        if self._seen is None or isinstance(item, Redefined):  # known transactions redefine nothing
            return False
        if isinstance(item, PositionAdvance):
            return item.gtid is not None and self._see(item.gtid)
        part = item.batch if isinstance(item, Prepared) else item
        if part.begin is not None:
            self._gtid = part.begin.gtid
            if self._gtid is None:
                raise PreflightError(
                    "a transaction in the archive has no GTID, so it is not known whether the log has it",
                    hint=f"{NEW_LOG} at a file and position of the archive: source.start",
                    at=part.begin.start,
                )
            self._left_out = self._gtid in self._seen
        if part.ending is not None and self._gtid is not None:
            self._see(self._gtid)
        return self._left_out

    def _see(self, gtid: str) -> bool:
        known = self._seen is not None and gtid in self._seen
        if self._seen is not None and not known:
            self._seen.add(gtid)
        return known


class _FileTail:
    """A file's format description, then its bytes from an offset on."""

    def __init__(self, file: LogFile, offset: int) -> None:
        self._remains = Remains(whole(file), file.name)
        self._bytes = self._remains.from_offset(offset)

    def receive(self, into: memoryview, timeout: float) -> int:
        return self._bytes.receive(into, timeout)

    def close(self) -> None:
        self._remains.close()


def covering(archive: Files, start: StreamStart) -> LogFile | None:
    """The archived file to begin with so that nothing after `start` is missing; None: there is none.

    Raises:
        ConfigError, CorruptBinlog: see `ArchivedLog`.
    """
    files = archive.files()
    if isinstance(start, SourcePosition):
        return next((file for file in files if file.name == start.file), None)
    known = parse_gtids(start.gtid_set)
    for file in reversed(files):
        before = previous_gtids(file)
        if before is not None and within(before, known):
            return file
    return None


def within(before: Gtids, known: Gtids) -> bool:
    """True if all GTIDs before a file are known; False if one set is MariaDB's and the other MySQL's."""
    if isinstance(before, DomainPosition) and isinstance(known, DomainPosition):
        return all(str(last) in known for last in before if last.number)
    return isinstance(before, GtidSet) and isinstance(known, GtidSet) and before.issubset(known)


def holds(archive: Files, finished: Finished) -> bool:
    """True if the files reach back to this transaction.

    Raises:
        ConfigError, CorruptBinlog: see `ArchivedLog`.
    """
    files = archive.files()
    before = previous_gtids(files[0]) if files and finished.gtid is not None else None
    if before is not None and finished.gtid is not None:
        return finished.gtid not in before
    return any(file.name == finished.start.file for file in files)


def previous_gtids(file: LogFile) -> Gtids | None:
    """The GTIDs of all files before this one, from its beginning; None if the log had none.

    Raises:
        ConfigError: the file cannot be read.
        CorruptBinlog: its beginning is damaged.
    """
    with closing(LogBytes(file)) as source:
        frames = EventFrames(64 << 10)
        raw = RawEvents(frames, file.name)
        start = b""
        try:
            while (event := second_event(start)) is None and frames.receive(source, 0):
                if not start and frames.head[TYPE_AT : TYPE_AT + 1] == START_V3:
                    return None
                start += b"".join(data for _, data in raw.drain())
        except ConnectorError as error:
            error.where = {**error.where, "file": file}
            raise
    if event is None:
        raise CorruptBinlog("the file ends before its second event", file=file)
    return beginning_gtids(event, checksums=raw.checksums)


def beginning_gtids(event: bytes, *, checksums: bool) -> Gtids | None:
    """The GTIDs in the event after a file's format description; None: it has none.

    Args:
        event: the whole event.
        checksums: true if it ends with a checksum.
    """
    body = event[HEADER:-4] if checksums else event[HEADER:]
    if event[4] == PREVIOUS_GTIDS:
        return decode_gtid_set(body)
    return gtid_list(body) if event[4] == MARIADB_GTID_LIST else None


def writer(file: LogFile) -> int:
    """The server id of a file's first event: of the server that wrote it.

    Raises:
        ConfigError: the file cannot be read.
        CorruptBinlog: it has no event.
    """
    start = bytearray(SERVER_ID.stop)
    with closing(LogBytes(file)) as source:
        filled = 0
        while filled < len(start) and (got := source.receive(memoryview(start)[filled:], 0)):
            filled += got
    if filled < len(start):
        raise CorruptBinlog("the file ends before its format description", file=file)
    return int.from_bytes(start[SERVER_ID], "little")


def second_event(start: bytes) -> bytes | None:
    """The event after the format description; None if it is not complete."""
    first = int.from_bytes(start[9:13], "little")
    if len(start) < first + HEADER:
        return None
    return start[first : first + int.from_bytes(start[first + 9 : first + 13], "little")]
