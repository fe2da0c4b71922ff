# CRC-32 as zlib counts it, of memory.

from libc.stdint cimport uint8_t, uint32_t

cdef uint32_t crc32(const uint8_t* data, size_t size, uint32_t before) noexcept nogil
