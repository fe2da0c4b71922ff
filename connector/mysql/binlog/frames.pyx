"""Cuts received bytes into events. Only bytes across the end of the buffer are copied.

A frame stays valid until the next `receive`. A frame larger than the buffer makes it grow; an empty buffer shrinks back.
"""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memmove

from connector.mysql.binlog.event cimport HEADER
from connector.mysql.memory cimport Cursor, damaged, little

from connector.mysql.compression import too_large
from connector.mysql.binlog.events.stream_messages import refusal
from connector.errors import CorruptBinlog, SourceUnavailable

cdef extern from "Python.h":
    object PyMemoryView_FromMemory(char* memory, Py_ssize_t size, int flags)
    int PyBUF_WRITE

cdef enum:
    PART = 0xFFFFFF  # a packet of this size continues in the next one
    LARGEST = 0x40100000  # MySQL's events have at most 1 GiB
    SEMI_SYNC = 0xEF  # first byte of the header of semi-synchronous replication
    WAITS = 0x01  # its second byte: the source waits for an acknowledgement


cdef class Frames:
    """The buffer.

    Args:
        size: usual size in bytes.
    """

    def __cinit__(self, Py_ssize_t size=1 << 20, *_):
        self.buffer = <uint8_t*>malloc(size)
        if self.buffer == NULL:
            raise MemoryError
        self.capacity = self.usual = size
        self.start = self.end = 0

    def __dealloc__(self):
        free(self.buffer)

    @property
    def left(self):
        """Bytes received and not handed out yet."""
        return self.end - self.start

    @property
    def head(self):
        """The first of these bytes, at most a header: for error messages."""
        return (<const uint8_t*>self.buffer)[self.start : min(self.end, self.start + HEADER)]

    def receive(self, source, double timeout):
        """Reads from the source.

        Returns:
            How many bytes; None: none within `timeout` seconds; 0: the source has ended.
        """
        self.make_space()
        view = PyMemoryView_FromMemory(<char*>self.buffer + self.end, self.capacity - self.end, PyBUF_WRITE)
        try:
            size = source.receive(view, timeout)
        finally:
            view.release()
        if size:
            if not 0 <= size <= self.capacity - self.end:
                raise ValueError("a source returned more bytes than requested")
            self.end += size
        return size

    cdef int make_space(self) except -1:
        cdef uint8_t* moved
        cdef Py_ssize_t needed = 0
        if self.start:
            memmove(self.buffer, self.buffer + self.start, self.end - self.start)
            self.end -= self.start
            self.start = 0
        if self.end == self.capacity:
            needed = 2 * self.capacity
        elif self.end == 0 and self.capacity > self.usual:
            needed = self.usual
        if needed:
            if needed // 2 > LARGEST:
                raise CorruptBinlog(f"an event larger than {LARGEST} bytes")
            moved = <uint8_t*>realloc(self.buffer, needed)
            if moved == NULL:
                raise MemoryError(f"no memory for an event of {self.capacity} bytes or more")
            self.buffer = moved
            self.capacity = needed
        return 0

    cdef bint next(self, Cursor* event) except -1:
        """Cuts the next event; False if it is not complete yet."""
        raise NotImplementedError


cdef class EventFrames(Frames):
    """Consecutive events: a file after its magic, or a decompressed transaction.

    Args:
        size: the buffer's usual size.
        magic: true if the four magic bytes of a file come first.
        largest: bytes of an event; a larger one is refused before memory is allocated.
    """

    def __init__(self, Py_ssize_t size=1 << 20, bint magic=True, Py_ssize_t largest=LARGEST):
        self.begun = not magic
        self.header = HEADER
        self.largest = largest

    cdef bint next(self, Cursor* event) except -1:
        cdef Py_ssize_t there = self.end - self.start
        cdef Py_ssize_t size
        if not self.begun:
            if there < 4:
                return False
            if memcmp(self.buffer + self.start, b"\xfebin", 4) != 0:
                damaged(b"the file does not begin as a binary log does")
            self.start += 4
            there -= 4
            self.begun = True
        if there < self.header:
            return False
        size = <Py_ssize_t>little(self.buffer + self.start + 9, 4)
        if size < self.header or size > LARGEST:
            raise CorruptBinlog("an event's length is impossible", size=size)
        if size > self.largest:
            raise too_large(size, self.largest)
        if there < size:
            return False
        event.data = self.buffer + self.start
        event.end = event.data + size
        self.start += size
        return True


cdef class PacketFrames(Frames):
    """Events in MySQL packets: 3 bytes length, 1 byte sequence number, a zero byte, the event.

    Args:
        size: the buffer's usual size.
        sequence: sequence number of the first packet.
    """

    def __init__(self, Py_ssize_t size=1 << 20, uint8_t sequence=1):
        self.sequence = sequence

    cdef bint next(self, Cursor* event) except -1:
        cdef uint8_t* packet
        cdef Py_ssize_t there, size
        while True:
            packet = self.buffer + self.start + self.scan
            there = self.end - self.start - self.scan
            if there < 4:
                return False
            size = <Py_ssize_t>little(packet, 3)
            if there < 4 + size:
                return False
            if packet[3] != self.sequence:
                damaged(b"a packet is missing: its sequence number is not the next one")
            self.sequence += 1
            if self.joined or self.scan:
                memmove(self.buffer + self.start + 4 + self.joined, packet + 4, size)
            self.scan += 4 + size
            self.joined += size
            if size < PART:
                break
            if self.joined > LARGEST:
                damaged(b"an event's length is impossible")
        packet = self.buffer + self.start + 4
        size = self.joined
        self.start += self.scan
        self.scan = self.joined = 0
        return self.unwrap(packet, size, event)

    cdef bint unwrap(self, const uint8_t* packet, Py_ssize_t size, Cursor* event) except -1:
        """Reads the packet: an event, an error or the end of the stream."""
        if size == 0:
            damaged(b"an empty packet")
        if packet[0] == 0xFF:
            refused(packet[1:size])
        if packet[0] == 0xFE and size < 9:
            raise SourceUnavailable("the source ended the stream of its binary log")
        if packet[0] != 0:
            damaged(b"a packet is neither an event nor an error")
        event.data = packet + 1
        event.end = packet + size
        return True


cdef class SemiSyncFrames(PacketFrames):
    """Events in the packets of a semi-synchronous dump: before each event a header of two bytes.

    The source restarts its sequence numbers after an event whose acknowledgement it waits for.

    Args:
        size: the buffer's usual size.
        sequence: sequence number of the first packet.
    """

    cdef bint unwrap(self, const uint8_t* packet, Py_ssize_t size, Cursor* event) except -1:
        PacketFrames.unwrap(self, packet, size, event)
        if event.end - event.data < 2 or event.data[0] != SEMI_SYNC or event.data[1] > WAITS:
            damaged(b"an event lacks the header of semi-synchronous replication")
        if event.data[1] == WAITS:
            self.sequence = 1
        event.data += 2
        return True


def refused(packet):
    """Raises the error of an ERR packet: 2 bytes code, `#` and 5 bytes of SQLSTATE, text."""
    raise refusal(int.from_bytes(packet[:2], "little"), packet[8:] if packet[2:3] == b"#" else packet[2:])
