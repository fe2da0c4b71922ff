"""Reading on behind damage: where the next whole transaction begins, and how a reader is put there."""

from __future__ import annotations

import mmap
import struct
import tempfile
import zlib
from contextlib import suppress
from typing import BinaryIO, Final

from connector.errors import ConnectorError, CorruptBinlog
from connector.mysql.binlog.events.format_description import format_description
from connector.mysql.binlog.log_files import MAGIC, LogBytes, LogFile
from connector.mysql.binlog.resync import next_event

HEADER: Final = 19
STOP, ROTATE, FORMAT, XID = 3, 4, 15, 16
IN_USE, ARTIFICIAL = 0x01, 0x20
# A transaction begins with its GTID (MySQL's, tagged or not; MariaDB's); the others stand between transactions.
BEGINS: Final = frozenset({STOP, ROTATE, 33, 34, 35, 42, 162, 163})


class Remains:
    """A damaged file, to be looked at as a whole.

    Args:
        file: an uncompressed log, at its beginning; closed with this.
        name: as its server calls it.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self.size = file.seek(0, 2)
        self._log: mmap.mmap | bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else b""
        self._format = self._found_format()
        self._checksum = format_description(self._format).checksum

    def next_transaction(self, start: int) -> int:
        """Where the next transaction begins whose first event is whole, at `start` or behind it.

        Returns:
            The offset; the file's size when there is none.
        """
        at, ended = next_event(self._log, start, self._checksum), False
        while at >= 0:
            if ended or self._log[at + 4] in BEGINS:
                return at
            behind = at + int.from_bytes(self._log[at + 9 : at + 13], "little")
            following = next_event(self._log, behind, self._checksum)
            # In a log without GTIDs, what comes right behind the end of a transaction begins the next one.
            ended = self._log[at + 4] == XID and following == behind
            at = following
        return self.size

    def start(self) -> Spliced:
        """The file from its first byte on."""
        return Spliced(b"", self._log, 0)

    def behind(self, at: int) -> Spliced:
        """The log's format, then word of the place, as a server sends it, then the events from there on."""
        body = struct.pack("<Q", at) + self._name.encode()
        rotate = struct.pack("<IBIIIH", 0, ROTATE, 0, HEADER + len(body) + 4, 0, ARTIFICIAL) + body
        return Spliced(MAGIC + self._format + _sealed(rotate), self._log, at)

    def close(self) -> None:
        """Close the file."""
        if isinstance(self._log, mmap.mmap):
            self._log.close()
        self._file.close()

    def _found_format(self) -> bytes:
        """The file's own description of its format, if that is whole; else one as servers since 5.6 write it."""
        event = bytearray(self._log[4 : 4 + int.from_bytes(self._log[13:17], "little") % (1 << 16)])
        behind = 4 + len(event)
        with suppress(ConnectorError):
            if event[4:5] == bytes([FORMAT]) and int.from_bytes(event[13:17], "little") == behind:
                event[17] &= ~IN_USE  # it is not in the checksum
                checksum = format_description(bytes(event)).checksum
                if checksum or next_event(self._log, behind, True) < 0:
                    return bytes(event)
        body = struct.pack("<H50sIB", 4, b"8.0.0", 0, HEADER) + bytes(42) + b"\1"
        size = HEADER + len(body) + 4
        return _sealed(struct.pack("<IBIIIH", 0, FORMAT, 0, size, 4 + size, 0) + body)


class Spliced:
    """Some bytes, then a log from a place on.

    Args:
        first: the bytes.
        log: the log; somebody else's.
        place: where it is read from.
    """

    def __init__(self, first: bytes, log: mmap.mmap | bytes, place: int) -> None:
        self._first = first
        self._log = log
        self.place = place

    def receive(self, into: memoryview, timeout: float = 0) -> int:
        """Fill `into`; 0 at the end."""
        del timeout
        if self._first:
            part, self._first = self._first[: len(into)], self._first[len(into) :]
        else:
            part = self._log[self.place : self.place + len(into)]
            self.place += len(part)
        into[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Nothing is held."""


def whole(file: LogFile, stdin: BinaryIO | None = None) -> BinaryIO:
    """The file without compression, such that one can go to any place in it: itself, or a temporary copy.

    Raises:
        ConfigError: it cannot be opened.
    """
    source = LogBytes(file, stdin)
    if file.path is not None and not source.compressed:
        source.close()
        return file.path.open("rb")
    copy = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    buffer = memoryview(bytearray(1 << 20))
    with suppress(CorruptBinlog):  # of a damaged compression: what could be read is all there is
        while size := source.receive(buffer):
            copy.write(buffer[:size])
    if file.path is not None:
        source.close()
    copy.flush()
    return copy


def _sealed(event: bytes) -> bytes:
    return event + struct.pack("<I", zlib.crc32(event))
