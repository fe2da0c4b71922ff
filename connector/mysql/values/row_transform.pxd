# The compiled rule of a table, applied to rows.

from libc.stdint cimport uint8_t

from connector.mysql.memory cimport Cursor, Out

cdef struct Part:
    int does  # row_transform.Does
    Py_ssize_t limit  # digits of a hash, characters of a text
    const uint8_t* value  # of FIX, with its tag
    Py_ssize_t size

cdef class RowTransform:
    cdef readonly object layout
    cdef readonly int width, kept
    cdef Part* parts
    cdef list values  # memory that the parts point to
    cdef bytes key
    cdef bint changes  # more than the table's name
    cdef int image(self, Cursor* row, Out* out, const uint8_t* present) except -1
    cdef int value(self, Part* part, Cursor* row, Out* out) except -1
    cdef int hashed(self, const uint8_t* data, Py_ssize_t size, Py_ssize_t digits, Out* out) except -1
    cdef bytes present(self, bytes bits)
    cpdef tuple rows(self, int action, bytes data, bytes ends, bytes before, bytes after)
