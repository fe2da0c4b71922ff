# Avro's binary encoding, read from bytes that may be damaged: nothing outside `data[at:end]` is ever touched,
# and what the encoding does not allow raises ValueError. Values are walked, not decoded.
#
#   long     `varint.pxd`
#   double   8 bytes          bytes, string   a long, then so many bytes
#   union    a long, the branch; then the branch's value          enum     a long, the index
#   boolean  a byte, 0 or 1
#   array    blocks: a long, the count (negative: its absolute value, and a long, the block's size), items; 0 ends

from connector.log.format.varint cimport TRUNCATED, read_varint, refuse


cdef class Reader:
    cdef const unsigned char[::1] data
    cdef Py_ssize_t at
    cdef Py_ssize_t end


cdef bytes read_bytes(Reader r)
cdef str read_text(Reader r)
cdef dict read_map(Reader r)


cdef inline unsigned char read_byte(Reader r) except? 255:
    if r.at >= r.end:
        raise ValueError("the bytes end within a value")
    r.at += 1
    return r.data[r.at - 1]


cdef inline long long read_long(Reader r) except? -1:
    cdef long long value = 0
    cdef int used = TRUNCATED
    if r.at < r.end <= r.data.shape[0]:
        used = read_varint(&r.data[r.at], r.end - r.at, &value)
    if used <= 0:
        refuse(used)
    r.at += used
    return value


cdef inline bint read_boolean(Reader r) except -1:
    cdef unsigned char byte = read_byte(r)
    if byte > 1:
        raise ValueError("a boolean that is neither true nor false")
    return byte


cdef inline int read_index(Reader r, int count) except -1:
    """The index of an enum or union that has `count` (at most 63) of them."""
    cdef unsigned char byte = read_byte(r)
    if byte & 1 or byte >> 1 >= count:
        raise ValueError("an index of an enum or a union that the schema does not have")
    return byte >> 1


cdef inline bint read_branch(Reader r) except -1:
    """True where a union with null has a value."""
    return read_index(r, 2)


cdef inline int skip(Reader r, long long count) except -1:
    if count < 0 or count > r.end - r.at:
        raise ValueError("a length that goes beyond the bytes")
    r.at += <Py_ssize_t>count
    return 0


cdef inline int skip_text(Reader r) except -1:
    return skip(r, read_long(r))


cdef inline int skip_value(Reader r) except -1:
    """A column's value: union of null, long, double, string, bytes."""
    cdef unsigned char branch = read_byte(r)
    if branch == 6 or branch == 8:
        return skip_text(r)
    if branch == 2:
        read_long(r)
        return 0
    if branch == 4:
        return skip(r, 8)
    if branch != 0:
        raise ValueError("a value of a type that the schema does not have")
    return 0


cdef inline long long read_block(Reader r) except? -1:
    """The next block's count; 0 when the array or map is over."""
    cdef long long count = read_long(r)
    if count < 0:
        count = -count
        read_long(r)
    if count < 0 or count > r.end - r.at:
        raise ValueError("more items than bytes")
    return count


cdef inline int skip_map(Reader r) except -1:
    """A map of strings."""
    cdef long long count, i
    while True:
        count = read_block(r)
        if count == 0:
            return 0
        for i in range(count):
            skip_text(r)
            skip_text(r)
