"""Columns of Arrow that grow by a row at a time."""

from libc.stdint cimport int64_t

from connector.log.format.text cimport Text


cdef class Buffers:
    cdef Text data
    cdef Text valid  # a byte a row
    cdef bint nulls

    cdef int there(self, bint is_there) except -1
    cdef object bitmap(self)


cdef class Numbers(Buffers):
    cdef int add(self, int64_t value) except -1
    cdef int add_object(self, object value) except -1
    cdef object array(self, object type_, Py_ssize_t rows)


cdef class Texts(Buffers):
    cdef Text ends

    cdef int end(self, bint is_there) except -1
    cdef int add(self, bytes value) except -1
    cdef object array(self, object type_, Py_ssize_t rows)
