# Text of any character set into UTF-8.

from libc.stdint cimport uint8_t, uint16_t, uint32_t

from connector.capture.memory cimport Out

cdef int put_utf8(Out* out, const uint8_t* text, Py_ssize_t size) except -1 nogil
cdef int put_mapped(Out* out, const uint8_t* text, Py_ssize_t size, const uint32_t* table) except -1 nogil
cdef int put_multibyte(
    Out* out, const uint8_t* text, Py_ssize_t size, const uint16_t* codes, int longest
) except -1 nogil
cdef bint is_utf8(const uint8_t* text, Py_ssize_t size) noexcept nogil
