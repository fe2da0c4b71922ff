"""CRC-32 for compiled code: the same number as `zlib.crc32`, of memory and without a call into Python.

A small transaction is sixteen pieces to check, of a hundred bytes each: calling zlib through Python took a fifth of
the producer's time.
"""

from libc.stdint cimport uint8_t, uint32_t

cdef extern from "crc32.h":
    void thl_crc32_prepare() noexcept nogil
    uint32_t thl_crc32(const uint8_t* data, size_t size, uint32_t before) noexcept nogil


cdef uint32_t crc32(const uint8_t* data, size_t size, uint32_t before) noexcept nogil:
    """The sum over `data`, going on from the sum `before` (0 at the beginning)."""
    return thl_crc32(data, size, before)


def checksum(data, unsigned int before=0):
    """The same for anything with a buffer, for tests."""
    cdef const uint8_t[::1] view = data
    return thl_crc32(&view[0] if len(view) else NULL, len(view), before)


thl_crc32_prepare()
