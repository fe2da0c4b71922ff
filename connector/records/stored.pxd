# The header of a stored version: the event's seqno (8 bytes), the row's definition (4 bytes), both big-endian.
#
# The only reader and the only writer: what else reads or writes a version calls these, or `stored` in Python.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    HEADER = 12  # bytes


cdef inline void write_header(uint8_t* at, int64_t seqno, uint32_t definition) noexcept nogil:
    """Write the header into `HEADER` bytes."""
    cdef int i
    for i in range(8):
        at[i] = <uint8_t>(<uint64_t>seqno >> (56 - 8 * i) & 0xFF)
    for i in range(4):
        at[8 + i] = <uint8_t>(definition >> (24 - 8 * i) & 0xFF)


cdef inline int64_t read_seqno(const uint8_t* at) noexcept nogil:
    """The seqno in a header of `HEADER` bytes."""
    cdef uint64_t seqno = 0
    cdef int i
    for i in range(8):
        seqno = seqno << 8 | at[i]
    return <int64_t>seqno


cdef inline uint32_t read_definition(const uint8_t* at) noexcept nogil:
    """The definition in a header of `HEADER` bytes."""
    cdef uint32_t definition = 0
    cdef int i
    for i in range(8, HEADER):
        definition = definition << 8 | at[i]
    return definition
