"""Text, bytes and bit strings as PostgreSQL's textrecv, json_recv, bytearecv and bit_recv take them."""

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memchr

from connector.log.format.avro_values cimport BYTES_VALUE, STRING_VALUE, Value
from connector.targets.postgres.copy_buffer cimport Buffer, put, put_field, put_number


cdef inline int put_text(Buffer* out, Value* value) except -1:
    if value.branch != STRING_VALUE:
        raise ValueError("kind", "is no text")
    if value.size and memchr(value.text, 0, value.size) != NULL:
        raise ValueError("zero_character", "has U+0000 in it, which PostgreSQL's text has not")
    return put_sized(out, value)


cdef inline int put_bytes(Buffer* out, Value* value) except -1:
    if value.branch != BYTES_VALUE:
        raise ValueError("kind", "is no bytes")
    return put_sized(out, value)


cdef inline int put_sized(Buffer* out, Value* value) except -1:
    if value.size > 0x3FFFFFFF:
        raise ValueError("size", "is larger than 1 GiB")
    put_field(out, <int32_t>value.size)
    return put(out, value.text, value.size)


cdef inline int put_bits(Buffer* out, Value* value, int bits) except -1:
    """MySQL fills the last byte, PostgreSQL the first: shifted to the left."""
    cdef Py_ssize_t size = (bits + 7) // 8, index
    cdef int shift = <int>(8 * size - bits)
    cdef unsigned int pair
    if value.branch != BYTES_VALUE or value.size != size or (shift and value.text[0] >> (8 - shift)):
        raise ValueError("bits", f"is no bit string of {bits} bits")
    put_field(out, <int32_t>(4 + size))
    put_number(out, <uint64_t>bits, 4)
    for index in range(size):
        pair = <unsigned int>value.text[index] << 8
        if index + 1 < size:
            pair |= value.text[index + 1]
        put_number(out, (pair << shift) >> 8, 1)
    return 0
