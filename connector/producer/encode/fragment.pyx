"""Writes a fragment's bytes: opening, Avro body, CRC-32, in one pass and one buffer with one copy at the end.

The functions are in the order of the format: Avro's primitives, then `schemas/fragment.avsc` field by field. Rows are
already encoded, and copied unchanged. Every write calls `_room` first, and every slice of rows is checked against its
buffer, so that no length in the input can cause a write outside of the buffer.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from connector.log.format.crc32 cimport crc32
from connector.log.format.varint cimport LONGEST, write_varint
from connector.log.transaction.batch cimport Rows

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyBytes_FromStringAndSize(const char *data, Py_ssize_t size)
    int PyBytes_AsStringAndSize(object data, char **to, Py_ssize_t *size) except -1

cdef enum:
    MOST = 1 << 30  # Kafka's sizes are 32-bit, librdkafka's message.max.bytes ends at 10^9
    KEEP = 1 << 20  # a buffer that a large row has made larger than this is freed


@cython.final
cdef class EventHeader:
    """The fields that all fragments of an event share, and after `end` those of the last one.

    Args:
        seqno, epoch, prev_seqno, last_barrier, server_id, thread_id, last_committed, sequence_number: the schema's
            fields.
        kind: the Avro enum's index.
        shard: the shard's name.
        gtid: the GTID; None if there is none.
        metadata: an encoded Avro map.
    """

    def __init__(
        self, long long seqno, long long epoch, int kind, str shard not None, long long prev_seqno,
        long long last_barrier, long long server_id, long long thread_id, str gtid, long long last_committed,
        long long sequence_number, bytes metadata not None,
    ):
        self.seqno = seqno
        self.epoch = epoch
        self.kind = kind
        self.shard = shard
        self.prev_seqno = prev_seqno
        self.last_barrier = last_barrier
        self.server_id = server_id
        self.thread_id = thread_id
        self.gtid = gtid
        self.last_committed = last_committed
        self.sequence_number = sequence_number
        self.metadata = metadata
        self.outcome = ABSENT

    def end(self, str event_id, commit_time, int outcome):
        """Set the event's end: the next fragment written is its last. A marker has neither event id nor time."""
        if outcome < 0:
            raise ValueError("an outcome is an index of the Avro enum")
        self.event_id = event_id
        self.timed = commit_time is not None
        self.commit_time = commit_time if self.timed else 0
        self.outcome = outcome


@cython.final
cdef class FragmentWriter:
    """Writes fragments one after the other. Not thread-safe.

    Args:
        opening: the bytes before the body, the same for every fragment: `connector.schema.Framing`.
        source_id: the source's host:port.
    """

    def __init__(self, bytes opening not None, str source_id not None):
        self._opening = opening
        self._source_id = source_id

    def __dealloc__(self):
        free(self._data)

    # Avro's primitives ------------------------------------------------------------------------------------------

    cdef int _room(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t size
        cdef void *data
        if more < 0 or more > MOST - self._used:
            raise OverflowError(f"{more} bytes more than {self._used}: no Kafka message holds a fragment of this size")
        if self._used + more > self._size:
            size = max(2 * self._size, self._used + more, 4096)
            data = realloc(self._data, size)
            if data == NULL:
                raise MemoryError(f"no memory for a fragment of {size} bytes")
            self._data = <unsigned char *>data
            self._size = size
        return 0

    cdef int _raw(self, const void *data, Py_ssize_t size) except -1:
        self._room(size)
        memcpy(self._data + self._used, data, size)
        self._used += size
        return 0

    cdef int _bytes(self, bytes data) except -1:
        cdef char *start
        cdef Py_ssize_t size
        PyBytes_AsStringAndSize(data, &start, &size)
        return self._raw(start, size)

    cdef int _byte(self, unsigned char value) except -1:
        return self._raw(&value, 1)

    cdef int _long(self, long long value) except -1:
        self._room(LONGEST)
        self._used += write_varint(self._data + self._used, value)
        return 0

    cdef int _string(self, str text) except -1:
        cdef Py_ssize_t size
        cdef const char *data = PyUnicode_AsUTF8AndSize(text, &size)
        self._long(size)
        return self._raw(data, size)

    cdef int _optional_string(self, str text) except -1:
        if text is None:
            return self._byte(0)
        self._long(1)
        return self._string(text)

    # the fragment -----------------------------------------------------------------------------------------------

    def write(self, EventHeader header not None, int fragno, bint last, long long rows, list changes not None):
        """Write one fragment.

        Args:
            header: the event's header.
            fragno: the fragment's number: 0, 1 …
            last: true for the event's last fragment; `header.end` was called before.
            rows: rows of the event so far, this fragment's included.
            changes: each an encoded statement (bytes), or `(row_header, count, data, start, stop)`: an encoded row
                change's header and `count` encoded rows, the bytes `start:stop` of `data`.

        Returns:
            The message's value.

        Raises:
            ValueError: a slice outside its buffer, or a last fragment of an event without outcome.
        """
        if last and header.outcome == ABSENT:
            raise ValueError("the last fragment needs the outcome")
        self._header(header, fragno, last, rows)
        self._changes(changes)
        return self._closed()

    cdef bytes whole(self, EventHeader header, long long rows, list row_headers, list changes):
        """Write the only fragment of an event of rows: `changes` are `Rows`, `row_headers` their encoded headers."""
        cdef Rows change
        cdef Py_ssize_t i
        self._header(header, 0, True, rows)
        if changes:
            self._long(len(changes))
        for i in range(len(changes)):
            change = changes[i]
            self._bytes(row_headers[i])
            self._long(change.count)
            self._slice(change.data, 0, len(change.data))
            self._byte(0)
        self._byte(0)
        return self._closed()

    cdef bytes _closed(self):
        """Append the CRC-32 of the body, and return the message's value."""
        cdef Py_ssize_t body = len(self._opening)
        cdef unsigned int check = crc32(self._data + body, self._used - body, 0)
        self._byte(<unsigned char>(check >> 24))
        self._byte(<unsigned char>(check >> 16 & 0xFF))
        self._byte(<unsigned char>(check >> 8 & 0xFF))
        self._byte(<unsigned char>(check & 0xFF))
        value = PyBytes_FromStringAndSize(<const char *>self._data, self._used)
        if self._size > KEEP:
            free(self._data)
            self._data = NULL
            self._size = 0
        return value

    cdef int _header(self, EventHeader header, int fragno, bint last, long long rows) except -1:
        self._used = 0
        self._bytes(self._opening)
        self._long(header.seqno)
        self._long(fragno)
        self._byte(1 if last else 0)
        self._long(header.epoch)
        self._long(header.kind)
        self._string(header.shard)
        self._long(header.prev_seqno)
        self._long(header.last_barrier)
        self._long(rows)
        self._string(self._source_id)
        self._long(header.server_id)
        self._long(header.thread_id)
        self._optional_string(header.gtid)
        self._long(header.last_committed)
        self._long(header.sequence_number)
        self._bytes(header.metadata)
        if not last:
            return self._raw(b"\x00\x00\x00", 3)  # event_id, commit_time, outcome: null
        self._optional_string(header.event_id)
        self._long(1 if header.timed else 0)
        if header.timed:
            self._long(header.commit_time)
        self._long(1)
        return self._long(header.outcome)

    cdef int _changes(self, list changes) except -1:
        cdef long long count
        cdef Py_ssize_t start, stop
        if changes:
            self._long(len(changes))
        for change in changes:
            if isinstance(change, bytes):
                self._bytes(change)
                continue
            row_header, count, data, start, stop = change
            self._bytes(row_header)
            self._long(count)
            self._slice(data, start, stop)
            self._byte(0)
        return self._byte(0)

    cdef int _slice(self, data, Py_ssize_t start, Py_ssize_t stop) except -1:
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= start < stop <= view.len:
                raise ValueError(f"rows {start}:{stop} are not within their {view.len} bytes")
            self._raw(<unsigned char *>view.buf + start, stop - start)
        finally:
            PyBuffer_Release(&view)
        return 0
