"""Cuts a binary log file into its events, without gathering transactions.

A compressed transaction is followed by the events in it, which have the position of the compressed one. Every event is
given as its server wrote it and, where an old layout has other headers or fixed parts, its body in today's layout.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

from connector.errors import ConnectorError, CorruptBinlog
from connector.mysql.binlog.events import event_types
from connector.mysql.binlog.events.dialect import OLDEST_HEADER, Dialect, old_dialect
from connector.mysql.binlog.events.event_types import FORMAT_DESCRIPTION, HEADER, ROTATE
from connector.mysql.binlog.events.format_description import format_description
from connector.mysql.binlog.events.mariadb import is_mariadb
from connector.mysql.binlog.events.payload import payload
from connector.mysql.binlog.log_files import MAGIC, LogBytes, LogFile, not_a_log
from connector.mysql.compression import too_large

START_V3, TRANSACTION_PAYLOAD, START_ENCRYPTION = 1, 40, 164
IN_USE, ARTIFICIAL = 0x01, 0x20
CHECKSUM: Final = 4
LARGEST: Final = 0x40100000  # MySQL's events have at most 1 GiB
CHUNK: Final = 1 << 20
LeaveOut = Callable[[LogFile, ConnectorError, int, int], None]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event with its header.

    Args:
        file: the file.
        position: where it begins; of an event in a compressed transaction, where that begins.
        timestamp: seconds since 1970 UTC when its statement began.
        code: its type.
        server_id: the server that first executed it.
        size: its bytes, as its header says.
        next_position: where the next event begins, as its header says; None: its header has no position.
        flags: the header's flags.
        body: what follows the header in today's layout, without checksum.
        checksum: its CRC-32; None: it has none.
        in_payload: its offset in an expanded compressed transaction; None: it is in none.
        mariadb: true if MariaDB wrote the file.
    """

    file: LogFile
    position: int
    timestamp: int
    code: int
    server_id: int
    size: int
    next_position: int | None
    flags: int
    body: bytes
    checksum: int | None
    in_payload: int | None
    mariadb: bool

    @property
    def where(self) -> dict[str, object]:
        """The event's ids, for errors."""
        return {"file": self.file, "pos": self.position, "event": event_types.name(self.code)}


def walk(
    file: LogFile,
    stdin: BinaryIO | None,
    largest: int,
    in_use: Callable[[LogFile], None] | None = None,
    leave_out: LeaveOut | None = None,
) -> Iterator[LogEvent]:
    """Reads the events of a file in order.

    Args:
        file: the file.
        stdin: standard input, if the file is.
        largest: the most bytes of an event in a compressed transaction.
        in_use: called if the file's flag says that its server is writing it, or died while it was.
        leave_out: called with the error of a damaged event whose length is credible; None: it ends the events.

    Raises:
        ConfigError: the file cannot be opened.
        CorruptBinlog, Unsupported: naming file, position and type.
    """
    with closing(LogBytes(file, stdin)) as source:
        events = _Walk(file, source, largest, leave_out)
        try:
            for event in events.all():
                if in_use is not None and event.code == FORMAT_DESCRIPTION and event.flags & IN_USE:
                    in_use(file)
                yield event
        except ConnectorError as error:
            error.where = {"file": file, "pos": events.position} | error.where
            error.hint = error.file_hint
            raise


class _Bytes(Protocol):
    """Bytes in order."""

    def receive(self, into: memoryview, timeout: float) -> int:
        """Fill `into`; 0 at the end."""


class _Cut:
    """Takes bytes from a source in any sizes."""

    def __init__(self, source: _Bytes) -> None:
        self._source = source
        self._buffer = bytearray()
        self._chunk = memoryview(bytearray(CHUNK))
        self.offset = 0

    def peek(self, size: int) -> bytes:
        """The next bytes, fewer at the end."""
        while len(self._buffer) < size and (got := self._source.receive(self._chunk, 0)):
            self._buffer += self._chunk[:got]
        return bytes(self._buffer[:size])

    def take(self, size: int) -> bytes:
        """The next bytes, fewer at the end; they are passed."""
        found = self.peek(size)
        del self._buffer[:size]
        self.offset += len(found)
        return found


class _Walk:
    def __init__(self, file: LogFile, source: _Bytes, largest: int, leave_out: LeaveOut | None) -> None:
        self._leave_out = leave_out
        self._file = file
        self._bytes = _Cut(source)
        self._largest = largest
        self._header = HEADER
        self._dialect: Dialect | None = None
        self._checksum = self._formatted = self._mariadb = False
        self.position = 0

    def all(self) -> Iterator[LogEvent]:
        if error := not_a_log(self._bytes.take(len(MAGIC))):
            raise error
        self.position = len(MAGIC)
        while self._bytes.peek(1):
            try:
                yield from self._next()
            except ConnectorError as error:
                if self._leave_out is None or not self._formatted or self._bytes.offset == self.position:
                    raise
                self._leave_out(self._file, error, self.position, self._bytes.offset)
            self.position = self._bytes.offset
        if not self._formatted:
            raise CorruptBinlog("the file ends before its format description")

    def _next(self) -> Iterator[LogEvent]:
        """The next event; after a compressed transaction the events in it."""
        head = self._bytes.peek(OLDEST_HEADER)
        size = int.from_bytes(head[9:13], "little")
        if len(head) < OLDEST_HEADER:
            raise CorruptBinlog(f"the file ends inside an event: {len(head)} of at least {self._header} bytes")
        if not any(head):
            raise CorruptBinlog("zeros instead of an event")
        if not min(self._header, HEADER) <= size <= LARGEST:
            raise CorruptBinlog("an event's length is impossible", size=size)
        whole = self._bytes.take(size)
        if len(whole) < size:
            raise CorruptBinlog(
                f"the file ends inside an event: {len(whole)} of its {size} bytes are there",
                event=event_types.name(head[4]),
            )
        try:
            event = self._event(whole)
            yield event
            if event.code == TRANSACTION_PAYLOAD:
                yield from self._inner(event)
            if event.code == START_ENCRYPTION:  # what follows is no event
                self._leave_out = None
                event_types.refuse(event.code, False, event.body, "")
        except ConnectorError as error:
            error.where = {"file": self._file, "pos": self.position, "event": event_types.name(head[4])} | error.where
            raise

    def _event(self, whole: bytes) -> LogEvent:
        code = whole[4]
        checksum: int | None = None
        if code == START_V3 and not self._formatted:
            self._dialect = old_dialect(whole)
            self._header, self._formatted = self._dialect.header, True
        flags = int.from_bytes(whole[17:19], "little") if self._header >= HEADER else 0
        bare = whole
        if code == FORMAT_DESCRIPTION:
            checksum = self._format(whole, flags)
            bare = whole[:-CHECKSUM] if checksum is not None else whole
        elif code == ROTATE and flags & ARTIFICIAL:  # it may precede the format that it has
            stored = int.from_bytes(whole[-CHECKSUM:], "little")
            if len(whole) >= HEADER + 12 and zlib.crc32(whole[:-CHECKSUM]) == stored:
                checksum, bare = stored, whole[:-CHECKSUM]
        elif not self._formatted:
            raise CorruptBinlog("an event comes before the format description")
        elif self._checksum:
            checksum = int.from_bytes(whole[-CHECKSUM:], "little")
            bare = whole[:-CHECKSUM]
            if len(whole) < HEADER + CHECKSUM or zlib.crc32(bare) != checksum:
                raise CorruptBinlog("an event's checksum is wrong", checksum=f"{checksum:08x}")
        if self._dialect is not None and code not in {FORMAT_DESCRIPTION, START_V3}:
            bare = self._dialect.canonical(bare)
            body = bare[HEADER:]
        else:
            body = bare[self._header if code == START_V3 else HEADER :]
        return self._made(whole, flags, body, checksum, None)

    def _made(self, whole: bytes, flags: int, body: bytes, checksum: int | None, in_payload: int | None) -> LogEvent:
        timestamp, code, server_id, size = struct.unpack_from("<IBII", whole)
        following = int.from_bytes(whole[13:17], "little") if self._header >= HEADER else None
        return LogEvent(
            self._file, self.position, timestamp, code, server_id, size, following, flags, body, checksum, in_payload,
            self._mariadb,
        )  # fmt: skip

    def _format(self, whole: bytes, flags: int) -> int | None:
        """Reads a format description; returns its checksum, which it has since 5.6, also in a file without others."""
        cleared = whole[:17] + bytes([whole[17] & ~IN_USE]) + whole[18:] if flags & IN_USE else whole
        found = format_description(cleared)
        self._checksum, self._dialect, self._formatted = found.checksum, found.dialect, True
        self._header = HEADER if found.dialect is None else found.dialect.header
        self._mariadb = is_mariadb(whole)
        return int.from_bytes(whole[-CHECKSUM:], "little") if found.has_algorithm else None

    def _inner(self, outer: LogEvent) -> Iterator[LogEvent]:
        """The events of a compressed transaction. They have no checksums of their own."""
        stream = _Cut(payload(outer.body))
        while head := stream.peek(HEADER):
            size = int.from_bytes(head[9:13], "little")
            if len(head) < HEADER or size < HEADER:
                raise CorruptBinlog("a compressed transaction ends inside an event", event=event_types.name(outer.code))
            if size > self._largest:
                raise too_large(size, self._largest)
            offset = stream.offset
            whole = stream.take(size)
            if len(whole) < size:
                raise CorruptBinlog("a compressed transaction ends inside an event", event=event_types.name(outer.code))
            yield self._made(whole, int.from_bytes(whole[17:19], "little"), whole[HEADER:], None, offset)
