"""Bytes that grow, and how PostgreSQL's binary formats write integers and lengths: big-endian."""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy


cdef struct Buffer:
    unsigned char* data
    Py_ssize_t size
    Py_ssize_t room


cdef inline int reserve(Buffer* out, Py_ssize_t more) except -1:
    cdef Py_ssize_t wanted
    cdef void* grown
    if out.size + more > out.room:
        wanted = max(out.room * 2, out.size + more)
        grown = realloc(out.data, wanted)
        if grown == NULL:
            raise MemoryError
        out.data = <unsigned char*>grown
        out.room = wanted
    return 0


cdef inline int put(Buffer* out, const unsigned char* data, Py_ssize_t size) except -1:
    reserve(out, size)
    memcpy(out.data + out.size, data, size)
    out.size += size
    return 0


cdef inline int put_number(Buffer* out, uint64_t number, int width) except -1:
    """A big-endian integer of some bytes."""
    cdef int left = width
    reserve(out, width)
    while left > 0:
        left -= 1
        out.data[out.size + left] = <unsigned char>(number & 0xFF)
        number >>= 8
    out.size += width
    return 0


cdef inline int put_field(Buffer* out, int32_t size) except -1:
    return put_number(out, <uint32_t>size, 4)
