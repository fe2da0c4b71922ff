# What a rule of the configuration makes of a table's rows.

from libc.stdint cimport uint8_t

from connector.mysql.memory cimport Cursor, Out

cdef struct Part:
    int does  # reshape.Does
    Py_ssize_t limit  # digits of a hash, characters of a text
    const uint8_t* value  # what stands in every row, with its tag
    Py_ssize_t size

cdef class RowTransform:
    cdef readonly object layout
    cdef readonly int width, kept
    cdef Part* parts
    cdef list values  # what the parts point into
    cdef bytes key
    cdef bint changes  # more than the name
    cdef int image(self, Cursor* row, Out* out, const uint8_t* present) except -1
    cdef int value(self, Part* part, Cursor* row, Out* out) except -1
    cdef int hashed(self, const uint8_t* data, Py_ssize_t size, Py_ssize_t digits, Out* out) except -1
    cdef bytes present(self, bytes bits)
    cpdef tuple rows(self, int action, bytes data, bytes ends, bytes before, bytes after)
