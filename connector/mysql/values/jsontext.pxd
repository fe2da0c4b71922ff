# Prints MySQL's binary JSON as MySQL does.

from libc.stdint cimport uint8_t

from connector.mysql.memory cimport Out

cdef int json_text(const uint8_t* document, Py_ssize_t size, Out* text) except -1 nogil
