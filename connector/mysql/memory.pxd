# Checked reads and growing writes: the access of `connector.mysql`'s decoders to raw memory.
#
# A `Cursor` reads bytes that its creator owns; only bytes granted by `take` are read. An `Out` is a growing buffer; only
# bytes granted by `room` are written.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from connector.log.format.varint cimport LONGEST, write_varint

cdef struct Cursor:
    const uint8_t* data  # the next byte
    const uint8_t* end

cdef struct Out:
    uint8_t* data
    Py_ssize_t size
    Py_ssize_t capacity

cdef enum Tag:  # branches of the union null/long/double/string/bytes, as Avro writes them
    NULL_TAG = 0
    LONG_TAG = 2
    DOUBLE_TAG = 4
    STRING_TAG = 6
    BYTES_TAG = 8

cdef int damaged(const char* what) except -1 nogil
cdef int overrun(Py_ssize_t needed, Py_ssize_t there) except -1 nogil
cdef int grow(Out* out, Py_ssize_t more) except -1 nogil
cdef void release(Out* out) noexcept nogil
cdef uint64_t packed(Cursor* cursor) except? 0xFFFFFFFFFFFFFFFF nogil


cdef inline Py_ssize_t left(const Cursor* cursor) noexcept nogil:
    return cursor.end - cursor.data


cdef inline const uint8_t* take(Cursor* cursor, Py_ssize_t size) except NULL nogil:
    """Grants the next `size` bytes and moves behind them."""
    cdef const uint8_t* here = cursor.data
    if size < 0 or size > cursor.end - here:
        overrun(size, cursor.end - here)
        return NULL
    cursor.data = here + size
    return here


cdef inline uint64_t little(const uint8_t* p, int size) noexcept nogil:
    """Reads `size` ≤ 8 granted bytes as an unsigned little-endian number."""
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value |= (<uint64_t>p[i]) << (8 * i)
    return value


cdef inline uint64_t big(const uint8_t* p, int size) noexcept nogil:
    """Reads `size` ≤ 8 granted bytes as an unsigned big-endian number."""
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = (value << 8) | p[i]
    return value


cdef inline uint32_t little4(const uint8_t* p) noexcept nogil:
    return p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)


cdef inline uint64_t little8(const uint8_t* p) noexcept nogil:
    return little4(p) | (<uint64_t>little4(p + 4) << 32)


cdef inline uint8_t* room(Out* out, Py_ssize_t size) except NULL nogil:
    """Grants `size` bytes behind the written ones; the caller adds the used bytes to `out.size`."""
    if size > out.capacity - out.size:
        grow(out, size)
    return out.data + out.size


cdef inline int put_byte(Out* out, uint8_t value) except -1 nogil:
    room(out, 1)[0] = value
    out.size += 1
    return 0


cdef inline int put_raw(Out* out, const void* data, Py_ssize_t size) except -1 nogil:
    memcpy(room(out, size), data, size)
    out.size += size
    return 0


cdef inline int put_count(Out* out, int64_t value) except -1 nogil:
    """Writes a long without a tag: Avro's counts and lengths."""
    out.size += write_varint(room(out, LONGEST), value)
    return 0


cdef inline int put_long(Out* out, int64_t value) except -1 nogil:
    cdef uint8_t* p = room(out, 11)
    p[0] = LONG_TAG
    out.size += 1 + write_varint(p + 1, value)
    return 0


cdef inline int put_double(Out* out, double value) except -1 nogil:
    cdef uint64_t bits
    cdef int i
    memcpy(&bits, &value, 8)
    cdef uint8_t* p = room(out, 9)
    p[0] = DOUBLE_TAG
    for i in range(8):
        p[1 + i] = <uint8_t>(bits >> (8 * i))
    out.size += 9
    return 0


cdef inline int put_block(Out* out, uint8_t tag, const void* data, Py_ssize_t size) except -1 nogil:
    """Writes a string or bytes."""
    cdef uint8_t* p = room(out, size + 11)
    p[0] = tag
    cdef int n = 1 + write_varint(p + 1, size)
    memcpy(p + n, data, size)
    out.size += n + size
    return 0


cdef inline int digits_of(uint64_t value, int least) noexcept nogil:
    """The number of decimal digits of `value`; not fewer than `least`."""
    cdef int digits = 1
    while value > 9:
        value //= 10
        digits += 1
    return max(digits, least)


cdef inline uint8_t* put_digits(uint8_t* p, uint64_t value, int width) noexcept nogil:
    """Writes `width` decimal digits of `value` to granted bytes; returns the end."""
    cdef int i
    for i in range(width - 1, -1, -1):
        p[i] = <uint8_t>(48 + value % 10)
        value //= 10
    return p + width
