# cython: cdivision=True
"""Cuts a dump into the bytes of the server's files: events are checked, not decoded.

The format is that of MySQL's `libs/mysql/binlog/event/binlog_event.h`. Events that exist only in the stream (heartbeats,
artificial ROTATEs, the repeated format description of a dump that begins inside a file) are left out.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from connector.mysql.binlog.event cimport (
    ARTIFICIAL,
    FORMAT_DESCRIPTION,
    HEARTBEAT,
    HEARTBEAT_V2,
    IN_USE,
    ROTATE,
    Event,
    read_header,
)
from connector.mysql.binlog.frames cimport Frames
from connector.mysql.memory cimport Cursor, damaged, left, little4, little8, take
from connector.log.format.crc32 cimport crc32

from connector.mysql.binlog.events import event_types
from connector.mysql.binlog.events.format_description import format_description
from connector.mysql.binlog.events.mariadb import is_mariadb
from connector.errors import ConnectorError, CorruptBinlog


cdef class RawEvents:
    """Cuts received events into the bytes of files.

    Args:
        frames: source of events.
        file: the first file's name.
        offset: offset of the first event in it.
    """

    cdef Frames frames
    cdef readonly str file
    cdef readonly int64_t offset
    cdef bint formatted, checksum
    cdef bint mariadb  # written by MariaDB
    cdef uint8_t type
    cdef bytearray data  # of `file`, not handed out yet
    cdef list found
    cdef object failure  # raised after `found` is handed out

    def __init__(self, Frames frames, str file="", int64_t offset=4):
        self.frames = frames
        self.file = file
        self.offset = offset
        self.data = bytearray()
        self.found = []

    @property
    def checksums(self):
        """True if events end with a CRC-32."""
        return self.checksum

    def drain(self):
        """Returns every whole event received since the last call.

        Returns:
            (file, bytes) in order; the bytes are the next ones of the file, b"" if the file has just begun.

        Raises:
            ConnectorError: an event contradicts the format; with file, position and type. Bytes before it are returned
                first. Every later call raises it again.
        """
        cdef Cursor event
        if self.failure is not None:
            raise self.failure
        self.type = 0
        try:
            while self.frames.next(&event):
                self._event(&event)
        except ConnectorError as error:
            where = {"file": self.file or None, "pos": self.offset}
            if self.type:
                where["event"] = event_types.name(self.type)
            error.where = where | error.where
            self.failure = error
        self._close_data()
        if self.failure is not None and not self.found:
            raise self.failure
        found = self.found
        self.found = []
        return found

    cdef int _event(self, Cursor* body) except -1:
        cdef const uint8_t* all = body.data
        cdef Event event
        read_header(body, &event)
        self.type = event.type
        if event.size != body.end - all:
            damaged(b"an event's length is not that of its packet")
        if event.type == ROTATE and event.flags & ARTIFICIAL:
            return self._begin(all, body)
        if event.type == FORMAT_DESCRIPTION:
            self._format(&event, all, body)
        elif not self.formatted:
            damaged(b"an event comes before the format description")
        elif self.checksum:
            if left(body) < 4:
                damaged(b"an event has no room for its checksum")
            if crc32(all, body.end - all - 4, 0) != little4(body.end - 4):
                raise CorruptBinlog("an event's checksum is wrong", checksum=f"{little4(body.end - 4):08x}")
        if event.type == HEARTBEAT or event.type == HEARTBEAT_V2 or event.flags & ARTIFICIAL:
            return 0
        if event.log_pos == 0:
            # MariaDB stores no positions inside of a transaction (since 11.4).
            if not self.mariadb or event.type == FORMAT_DESCRIPTION:
                return 0
        elif <uint32_t>(self.offset + event.size) != event.log_pos:
            raise CorruptBinlog(
                "the binary log jumps: an event does not begin where the last one ended",
                ends=event.log_pos, size=event.size,
            )
        self.data += all[: event.size]
        self.offset += event.size
        return 0

    cdef int _format(self, Event* event, const uint8_t* all, Cursor* body) except -1:
        """FORMAT_DESCRIPTION. Its checksum is computed with IN_USE cleared."""
        cdef bytes whole = all[: body.end - all]
        if event.flags & IN_USE:
            whole = whole[:17] + bytes([whole[17] & ~IN_USE]) + whole[18:]
        self.checksum = format_description(whole).checksum
        self.mariadb = is_mariadb(whole)
        self.formatted = True
        return 0

    cdef int _begin(self, const uint8_t* all, Cursor* body) except -1:
        """Artificial ROTATE: the next file and offset. It precedes the format description, which tells of checksums."""
        cdef int64_t offset
        if left(body) >= 12 and crc32(all, body.end - all - 4, 0) == little4(body.end - 4):
            body.end -= 4
        offset = <int64_t>little8(take(body, 8))
        file = (<bytes>body.data[: body.end - body.data]).decode(errors="replace")
        if file == self.file:
            if offset != self.offset:
                damaged(b"the server continues at another offset of the file")
            return 0
        self._close_data()
        self.file = file
        self.offset = offset
        self.found.append((file, b""))
        return 0

    cdef int _close_data(self) except -1:
        if self.data:
            self.found.append((self.file, bytes(self.data)))
            self.data = bytearray()
        return 0
