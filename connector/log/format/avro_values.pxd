"""Avro's binary encoding of a value of the log: the union null, long, double, string, bytes.

Every read is checked against the end of the data first, whatever the data says of its own lengths.
"""

from libc.string cimport memcpy

from connector.log.format.varint cimport read_varint, refuse

cdef enum Branch:
    NULL_VALUE = 0
    LONG_VALUE = 1
    DOUBLE_VALUE = 2
    STRING_VALUE = 3
    BYTES_VALUE = 4


cdef struct Cursor:
    const unsigned char* data
    Py_ssize_t at
    Py_ssize_t end


cdef struct Value:
    int branch
    long long whole
    double real
    const unsigned char* text  # string or bytes
    Py_ssize_t size


cdef inline int read_long(Cursor* cursor, long long* out) except -1:
    """A long; `varint.pxd`."""
    cdef int used = read_varint(cursor.data + cursor.at, cursor.end - cursor.at, out)
    if used <= 0:
        refuse(used)
    cursor.at += used
    return 0


cdef inline int read_value(Cursor* cursor, Value* out) except -1:
    """The next value; its text points into the data."""
    cdef long long number
    read_long(cursor, &number)
    if number < 0 or number > 4:
        raise ValueError("a value is of no kind that the log has")
    out.branch = <int>number
    if out.branch == LONG_VALUE:
        read_long(cursor, &out.whole)
    elif out.branch == DOUBLE_VALUE:
        if cursor.end - cursor.at < 8:
            raise ValueError("a value ends in the middle of a double")
        memcpy(&out.real, cursor.data + cursor.at, 8)
        cursor.at += 8
    elif out.branch >= STRING_VALUE:
        read_long(cursor, &number)
        if number < 0 or number > cursor.end - cursor.at:
            raise ValueError("a value is longer than its image")
        out.text = cursor.data + cursor.at
        out.size = <Py_ssize_t>number
        cursor.at += out.size
    return 0
