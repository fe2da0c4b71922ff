# Row changes' heads, encoded once.

cdef class Table:
    cdef object layout
    cdef readonly str schema
    cdef list heads
    cdef bytes head(self, object action)

cdef class Heads:
    cdef dict kept
    cdef Table newest
    cdef Table of(self, object layout)
