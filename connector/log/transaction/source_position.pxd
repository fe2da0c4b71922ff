# A position in the source's binary log.

from libc.stdint cimport int64_t

cdef class SourcePosition:
    cdef readonly str file
    cdef readonly int64_t offset


cdef inline SourcePosition source_position(str file, int64_t offset):
    cdef SourcePosition made = SourcePosition.__new__(SourcePosition)
    made.file = file
    made.offset = offset
    return made
