# cython: cdivision=True
"""Columns of Arrow that grow by a row at a time, written directly into Arrow's buffers."""

import pyarrow as pa

from cpython.bytes cimport PyBytes_AsString
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from connector.log.format.text cimport Text, bytes_of, put

cdef Py_ssize_t LARGEST = (<Py_ssize_t>1 << 31) - 1  # bytes of a column: Arrow's string has 32-bit offsets


cdef class Buffers:
    """The common part of all columns: their bytes, and a flag per row: not null."""

    def __cinit__(self):
        memset(&self.data, 0, sizeof(Text))
        memset(&self.valid, 0, sizeof(Text))

    def __dealloc__(self):
        free(self.data.data)
        free(self.valid.data)

    cdef int there(self, bint is_there) except -1:
        cdef unsigned char one = is_there
        self.nulls = self.nulls or not is_there
        return put(&self.valid, &one, 1)

    cdef object bitmap(self):
        """Return Arrow's validity bitmap, least significant bit first; None if no value is null."""
        cdef Py_ssize_t row
        found = None
        if self.nulls:
            bits = bytearray((self.valid.size + 7) // 8)
            for row in range(self.valid.size):
                if self.valid.data[row]:
                    bits[row >> 3] |= 1 << (row & 7)
            found = pa.py_buffer(bytes(bits))
        self.valid.size = 0
        self.nulls = False
        return found


cdef class Numbers(Buffers):
    """A column of 64-bit integers, or of times."""

    cdef int add(self, int64_t value) except -1:
        self.there(True)
        return put(&self.data, <const unsigned char*>&value, 8)

    cdef int add_object(self, object value) except -1:
        """Add an integer or None."""
        cdef int64_t number = 0 if value is None else value
        self.there(value is not None)
        return put(&self.data, <const unsigned char*>&number, 8)

    cdef object array(self, object type_, Py_ssize_t rows):
        cdef bytes data = bytes_of(&self.data)
        self.data.size = 0
        return pa.Array.from_buffers(type_, rows, [self.bitmap(), pa.py_buffer(data)])


cdef class Texts(Buffers):
    """A column of texts."""

    def __cinit__(self):
        memset(&self.ends, 0, sizeof(Text))

    def __dealloc__(self):
        free(self.ends.data)

    cdef int end(self, bint is_there) except -1:
        """End a row: its text are the bytes written to `data` since the previous row."""
        cdef int32_t at
        if self.data.size > LARGEST:
            raise ValueError("rows are too large for one batch of Arrow")
        at = <int32_t>self.data.size
        self.there(is_there)
        return put(&self.ends, <const unsigned char*>&at, 4)

    cdef int add(self, bytes value) except -1:
        """Add a text or None."""
        if value is not None:
            put(&self.data, <const unsigned char*>PyBytes_AsString(value), len(value))
        return self.end(value is not None)

    cdef object array(self, object type_, Py_ssize_t rows):
        cdef bytes ends = b"\0\0\0\0" + bytes_of(&self.ends)
        cdef bytes data = bytes_of(&self.data)
        self.data.size = 0
        self.ends.size = 0
        return pa.Array.from_buffers(type_, rows, [self.bitmap(), pa.py_buffer(ends), pa.py_buffer(data)])
