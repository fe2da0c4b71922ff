# Converts text of any character set to UTF-8. Invalid text is written as bytes if `keep`, else it is an error.

from libc.stdint cimport uint8_t, uint16_t, uint32_t

from connector.mysql.memory cimport Out

cdef int put_utf8(Out* out, const uint8_t* text, Py_ssize_t size, bint keep) except -1 nogil
cdef int put_mapped(
    Out* out, const uint8_t* text, Py_ssize_t size, const uint32_t* table, bint keep
) except -1 nogil
cdef int put_multibyte(
    Out* out, const uint8_t* text, Py_ssize_t size, const uint16_t* codes, int longest, bint keep
) except -1 nogil
cdef bint is_utf8(const uint8_t* text, Py_ssize_t size) noexcept nogil
cdef int put_invalid(Out* out, const uint8_t* text, Py_ssize_t size, Py_ssize_t at, bint keep) except -1 nogil
