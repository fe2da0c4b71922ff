# cython: cdivision=True
"""Errors and growth for the checked reads and growing writes of `memory.pxd`."""

from libc.stdint cimport uint64_t, uint8_t
from libc.stdlib cimport free, realloc

from connector.errors import CorruptBinlog


cdef int damaged(const char* what) except -1 nogil:
    """Raises CorruptBinlog; callers that know file and position add them."""
    with gil:
        raise CorruptBinlog(what.decode())


cdef int overrun(Py_ssize_t needed, Py_ssize_t there) except -1 nogil:
    with gil:
        raise CorruptBinlog("a length points outside of its event", needed=needed, left=there)


cdef int grow(Out* out, Py_ssize_t more) except -1 nogil:
    """Grows the buffer, at least to twice its size, so that the cost of writing stays linear."""
    cdef Py_ssize_t capacity = max(out.size + more, 2 * out.capacity, 4096)
    cdef uint8_t* data = NULL
    if more >= 0 and capacity > 0:
        data = <uint8_t*>realloc(out.data, capacity)
    if data == NULL:
        with gil:
            raise MemoryError(f"no memory for {capacity} bytes of rows")
    out.data = data
    out.capacity = capacity
    return 0


cdef void release(Out* out) noexcept nogil:
    free(out.data)
    out.data = NULL
    out.size = out.capacity = 0


cdef uint64_t packed(Cursor* cursor) except? 0xFFFFFFFFFFFFFFFF nogil:
    """Reads MySQL's length-encoded integer: one byte below 251, or 2, 3, 8 bytes after 252, 253, 254."""
    cdef uint8_t first = take(cursor, 1)[0]
    if first < 251:
        return first
    if first == 252:
        return little(take(cursor, 2), 2)
    if first == 253:
        return little(take(cursor, 3), 3)
    if first == 254:
        return little(take(cursor, 8), 8)
    damaged(b"a packed integer starts with 251 or 255")
    return 0xFFFFFFFFFFFFFFFF
