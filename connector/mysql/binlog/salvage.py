"""Finds the next whole transaction after damage, and makes a source that continues there."""

from __future__ import annotations

import mmap
import struct
import tempfile
import zlib
from contextlib import suppress
from typing import BinaryIO, Final

from connector.errors import ConnectorError, CorruptBinlog
from connector.mysql.binlog.events.event_types import (
    ANONYMOUS_GTID,
    FORMAT_DESCRIPTION,
    GTID,
    GTID_TAGGED,
    HEADER,
    MARIADB_GTID,
    MARIADB_GTID_LIST,
    PREVIOUS_GTIDS,
    ROTATE,
    STOP,
    XID,
)
from connector.mysql.binlog.events.format_description import format_description
from connector.mysql.binlog.log_files import MAGIC, LogBytes, LogFile
from connector.mysql.binlog.resync import next_event

IN_USE, ARTIFICIAL = 0x01, 0x20
# GTIDs (MySQL's, tagged or not; MariaDB's) begin a transaction; the other events are between transactions.
BEGINS: Final = frozenset(
    {STOP, ROTATE, GTID, ANONYMOUS_GTID, PREVIOUS_GTIDS, GTID_TAGGED, MARIADB_GTID, MARIADB_GTID_LIST}
)


class Remains:
    """A damaged file, mapped as a whole.

    Args:
        file: an uncompressed log, at its beginning; `close` closes it.
        name: the file's name on its server.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self.size = file.seek(0, 2)
        self._log: mmap.mmap | bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else b""
        self._format = self._found_format()
        self._checksum = format_description(self._format).checksum

    def next_transaction(self, start: int) -> int:
        """Finds the next transaction with a whole first event at `start` or after it.

        Returns:
            Its offset; the file's size if there is none.
        """
        at, ended = next_event(self._log, start, self._checksum), False
        while at >= 0:
            if ended or self._log[at + 4] in BEGINS:
                return at
            end = at + int.from_bytes(self._log[at + 9 : at + 13], "little")
            following = next_event(self._log, end, self._checksum)
            # Without GTIDs, the event directly after the end of a transaction begins the next one.
            ended = self._log[at + 4] == XID and following == end
            at = following
        return self.size

    def start(self) -> Spliced:
        """A source of the whole file."""
        return Spliced(b"", self._log, 0)

    def from_offset(self, at: int) -> Spliced:
        """A source of the format description, a ROTATE to the offset as a server sends it, then the events."""
        body = struct.pack("<Q", at) + self._name.encode()
        rotate = struct.pack("<IBIIIH", 0, ROTATE, 0, HEADER + len(body) + 4, 0, ARTIFICIAL) + body
        return Spliced(MAGIC + self._format + _sealed(rotate), self._log, at)

    def close(self) -> None:
        """Closes the file."""
        if isinstance(self._log, mmap.mmap):
            self._log.close()
        self._file.close()

    def _found_format(self) -> bytes:
        """The file's format description if it is whole; else one of servers since 5.6."""
        event = bytearray(self._log[4 : 4 + int.from_bytes(self._log[13:17], "little") % (1 << 16)])
        end = 4 + len(event)
        with suppress(ConnectorError):
            if event[4:5] == bytes([FORMAT_DESCRIPTION]) and int.from_bytes(event[13:17], "little") == end:
                event[17] &= ~IN_USE  # not part of the checksum
                checksum = format_description(bytes(event)).checksum
                if checksum or next_event(self._log, end, True) < 0:
                    return bytes(event)
        body = struct.pack("<H50sIB", 4, b"8.0.0", 0, HEADER) + bytes(42) + b"\1"
        size = HEADER + len(body) + 4
        return _sealed(struct.pack("<IBIIIH", 0, FORMAT_DESCRIPTION, 0, size, 4 + size, 0) + body)


class Spliced:
    """Some bytes, then a log from an offset on.

    Args:
        first: the bytes.
        log: the log; not closed here.
        offset: the first byte of the log to read.
    """

    def __init__(self, first: bytes, log: mmap.mmap | bytes, offset: int) -> None:
        self._first = first
        self._log = log
        self.offset = offset

    def receive(self, into: memoryview, timeout: float = 0) -> int:
        """Fills `into`; 0 at the end."""
        del timeout
        if self._first:
            part, self._first = self._first[: len(into)], self._first[len(into) :]
        else:
            part = self._log[self.offset : self.offset + len(into)]
            self.offset += len(part)
        into[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Does nothing: the log is its owner's."""


def whole(file: LogFile, stdin: BinaryIO | None = None) -> BinaryIO:
    """Opens the file uncompressed and seekable: itself, or a temporary copy.

    Raises:
        ConfigError: it cannot be opened.
    """
    source = LogBytes(file, stdin)
    if file.path is not None and not source.compressed:
        source.close()
        return file.path.open("rb")
    copy = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    buffer = memoryview(bytearray(1 << 20))
    with suppress(CorruptBinlog):  # damaged compression: keep what could be read
        while size := source.receive(buffer):
            copy.write(buffer[:size])
    if file.path is not None:
        source.close()
    copy.flush()
    return copy


def _sealed(event: bytes) -> bytes:
    return event + struct.pack("<I", zlib.crc32(event))
