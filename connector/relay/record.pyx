"""The bytes of a fragment's record, made of messages. All numbers are big-endian.

    int32   bytes of the record, these included
    int8    0: a fragment (`connector.relay.frames` has the other types)
    int32   bytes of the header, which follows
    int64   seqno            int32   fragno           int8    1: the last fragment       int64   epoch
    text    source id        text    event id         text    shard                      int64   commit time, µs
    int32   partition        int64   offset
    int32   bytes of the message
            the message as it is on Kafka
    int8    1: the checksum is a CRC-32
    int32   of all bytes before the checksum

A text is its length in bytes, uint16, and UTF-8. Fields up to the commit time, and the order of all, are those of a
THL record; partition and offset are added, so that a target that was applied to from here continues from Kafka.
"""

import struct

from cpython.bytearray cimport PyByteArray_Resize
from libc.string cimport memcpy

from connector.log.compact.scan cimport Messages, ScannedMessage
from connector.log.format.crc32 cimport crc32
from connector.log.format.header_reader cimport Span
from connector.log.format.message cimport Message

cdef Py_ssize_t CRC_SIZE = 4  # of a message
cdef Py_ssize_t FRAME = 4 + 1 + 4
cdef Py_ssize_t FIXED = 8 + 4 + 1 + 8 + 2 + 2 + 2 + 8 + 4 + 8
cdef Py_ssize_t TAIL = 1 + 4

cdef enum:
    LONGEST = 65535  # bytes of a text
    MOST = 0x7F000000  # bytes of a message

cdef object HEAD = struct.Struct(">qi?q")
cdef object PLACE = struct.Struct(">qiq")


def add_records(bytearray out, ends, Messages messages, Py_ssize_t first, Py_ssize_t end):
    """Append the records of messages, each a whole event.

    Args:
        out: gets the records.
        ends: `array('q')`, gets the length of `out` after each record.
        messages: the messages.
        first, end: the indexes, `end` not included.
    """
    cdef Py_ssize_t index, at = len(out), size = 0
    for index in range(first, end):
        size += record_size(messages.at(index))
    if PyByteArray_Resize(out, at + size) < 0:
        raise MemoryError
    cdef unsigned char[::1] view = out
    for index in range(first, end):
        at = put_record(view, at, messages, messages.at(index))
        ends.append(at)


def add_record(bytearray out, Message message):
    """Append the record of one message."""
    header = message.header
    data = bytes(message.block.data[message.start : message.end + CRC_SIZE])
    texts = text(header.source_id) + text(header.event_id or "") + text(header.shard)
    head = (
        HEAD.pack(header.seqno, header.fragno, header.last_frag, header.epoch)
        + texts
        + PLACE.pack(header.commit_time or 0, message.partition, message.offset)
    )
    out += framed(0, head, data)


def framed(int kind, bytes head, bytes data=b""):
    """Return a record of any type."""
    cdef Py_ssize_t size = FRAME + len(head) + 4 + len(data) + TAIL
    if size > 0x7FFFFFFF:
        raise ValueError("a record is too large")
    record = struct.pack(">iBi", size, kind, len(head)) + head + struct.pack(">i", len(data)) + data + b"\1"
    return record + struct.pack(">I", checksum(record))


def checksum(const unsigned char[::1] data):
    """Return the CRC-32 of bytes."""
    return crc32(&data[0], data.shape[0], 0) if data.shape[0] else 0


cdef bytes text(str value):
    encoded = value.encode()
    if len(encoded) > LONGEST:
        raise ValueError("a text of a record is too long")
    return struct.pack(">H", len(encoded)) + encoded


cdef void texts_of(ScannedMessage* message, Span* texts) noexcept:
    texts[0] = message.header.source_id
    texts[1] = message.header.event_id
    texts[2] = message.header.shard


cdef inline Py_ssize_t span_size(Span span) noexcept:
    return span.end - span.start if span.start else 0


cdef Py_ssize_t record_size(ScannedMessage* message) except -1:
    cdef Py_ssize_t size = FRAME + FIXED + 4 + TAIL, data = message.end + CRC_SIZE - message.start
    cdef Span[3] texts
    cdef int index
    texts_of(message, texts)
    for index in range(3):
        if span_size(texts[index]) > LONGEST:
            raise ValueError("a text of a record is too long")
        size += span_size(texts[index])
    if not 0 <= data <= MOST:
        raise ValueError("a record is too large")
    return size + data


cdef Py_ssize_t put_record(unsigned char[::1] out, Py_ssize_t begin, Messages messages, ScannedMessage* message) except -1:
    """Write a record, and return the place after it."""
    cdef Py_ssize_t size = record_size(message), data = message.end + CRC_SIZE - message.start, at = begin, length
    cdef const unsigned char[::1] source = messages.scanned.block.data
    cdef Span[3] texts
    cdef int index
    texts_of(message, texts)
    if begin + size > out.shape[0] or message.start < 0 or message.start + data > source.shape[0]:
        raise IndexError("a record outside of its buffer")
    at = put(out, at, 4, size)
    at = put(out, at, 1, 0)
    at = put(out, at, 4, size - FRAME - 4 - data - TAIL)
    at = put(out, at, 8, message.header.seqno)
    at = put(out, at, 4, message.header.fragno)
    at = put(out, at, 1, message.header.last_frag)
    at = put(out, at, 8, message.header.epoch)
    for index in range(3):
        length = span_size(texts[index])
        at = put(out, at, 2, length)
        if length:
            if texts[index].end > source.shape[0] or length < 0:
                raise IndexError("a text outside of its message")
            memcpy(&out[at], &source[texts[index].start], length)
            at += length
    at = put(out, at, 8, message.header.commit_time)
    at = put(out, at, 4, message.partition)
    at = put(out, at, 8, message.offset)
    at = put(out, at, 4, data)
    if data:
        memcpy(&out[at], &source[message.start], data)
    at = put(out, at + data, 1, 1)
    return put(out, at, 4, crc32(&out[begin], at - begin, 0))


cdef inline Py_ssize_t put(unsigned char[::1] out, Py_ssize_t at, int size, long long value) except -1:
    """Write a number, and return the place after it."""
    cdef int index
    for index in range(size):
        out[at + index] = <unsigned char>(value >> (8 * (size - 1 - index)) & 0xFF)
    return at + size
