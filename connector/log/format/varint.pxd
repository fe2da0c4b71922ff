# Avro's long and int on the wire, of memory: zigzag, then seven bits a byte, least significant first, 1 to 10 bytes.
#
# The only reader and the only writer: what else reads or writes a number of the log calls these.

cdef enum:
    LONGEST = 10  # bytes of a number
    TRUNCATED = 0  # the bytes end within the number
    TOO_LONG = -1  # more than ten bytes
    TOO_LARGE = -2  # more than 64 bits


cdef int refuse(int failure) except -1


cdef inline int read_varint(const unsigned char* data, Py_ssize_t size, long long* out) noexcept nogil:
    """Read the number at the beginning of `size` bytes.

    Returns:
        Its bytes, 1 to 10; or TRUNCATED, TOO_LONG or TOO_LARGE, and `out` is as it was.
    """
    cdef unsigned long long raw
    cdef unsigned char byte
    cdef int used
    if size <= 0:
        return TRUNCATED
    raw = data[0] & 0x7F
    if data[0] >= 0x80:
        for used in range(1, LONGEST):
            if used >= size:
                return TRUNCATED
            byte = data[used]
            if used == LONGEST - 1 and byte > 1:
                return TOO_LONG if byte >= 0x80 else TOO_LARGE
            raw |= <unsigned long long>(byte & 0x7F) << 7 * used
            if byte < 0x80:
                break
        used += 1
    else:
        used = 1
    out[0] = <long long>(raw >> 1) ^ -<long long>(raw & 1)
    return used


cdef inline int write_varint(unsigned char* to, long long value) noexcept nogil:
    """Write a number to `to`, which has room for ten bytes; returns how many it used."""
    cdef unsigned long long rest = (<unsigned long long>value << 1) ^ <unsigned long long>(value >> 63)
    cdef int used = 0
    while rest > 0x7F:
        to[used] = <unsigned char>(rest | 0x80)
        rest >>= 7
        used += 1
    to[used] = <unsigned char>rest
    return used + 1
