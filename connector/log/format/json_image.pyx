"""Row images as objects of JSON: `{"id":1,"v":"x"}`.

Values are exact: a 64-bit integer is a number with all its digits, a float or double the shortest one that reads back
the same, a decimal or a time the text that MySQL prints, bytes are `{"base64":"…"}`. A column that an image lacks
(binlog_row_image) is missing, not null.
"""

from cpython.bytes cimport PyBytes_AsString
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from connector.log.format.avro_reader cimport Reader, read_block, read_branch, read_byte, read_long, skip
from connector.log.format.text cimport (
    Text,
    bytes_of,
    put,
    put_bytes,
    put_double,
    put_integer,
    put_single,
    put_string,
    put_whole,
)
from connector.log.rules import BrokenRule, Rule

cdef enum:
    NULL_BRANCH = 0  # branches of the union in Avro
    LONG_BRANCH = 2
    DOUBLE_BRANCH = 4
    STRING_BRANCH = 6
    BYTES_BRANCH = 8


cdef class JsonColumns:
    """The columns of a layout, as their values are written."""


cdef JsonColumns json_columns(object layout):
    """The columns of a layout."""
    cdef JsonColumns made = JsonColumns.__new__(JsonColumns)
    made.width = len(layout.columns)
    made.names = [label(column.name.encode()) for column in layout.columns]
    made.whole = bytes([column.type == "bigint" and column.unsigned for column in layout.columns])
    made.single = bytes([column.type == "float" for column in layout.columns])
    return made


cdef bytes label(bytes name):
    """A column's name, and what separates it from its value."""
    cdef Text text
    memset(&text, 0, sizeof(Text))
    try:
        put_string(&text, <const unsigned char*>PyBytes_AsString(name), len(name))
        put(&text, b":", 1)
        return bytes_of(&text)
    finally:
        free(text.data)


cdef bint put_image(Text* out, Reader r, JsonColumns columns, bytes present) except -1:
    """Write a row's image; return False, and write nothing, if there is none.

    Args:
        out: gets the object.
        r: is before the image.
        columns: of the image's layout.
        present: a bit for each column that the image has; empty: it has all.
    """
    cdef long long left = 0
    cdef Py_ssize_t column
    cdef bint first = True
    cdef const unsigned char* whole = <const unsigned char*>PyBytes_AsString(columns.whole)
    cdef const unsigned char* single = <const unsigned char*>PyBytes_AsString(columns.single)
    cdef bytes name
    if not read_branch(r):
        return False
    put(out, b"{", 1)
    for column in range(columns.width):
        if present and not present[column >> 3] >> (column & 7) & 1:
            continue
        if left == 0:
            left = read_block(r)
            if left == 0:
                raise BrokenRule(Rule.IMAGE_VALUES, values="too few")
        left -= 1
        if not first:
            put(out, b",", 1)
        first = False
        name = columns.names[column]
        put(out, <const unsigned char*>PyBytes_AsString(name), len(name))
        put_value(out, r, whole[column], single[column])
    if left or read_block(r):
        raise BrokenRule(Rule.IMAGE_VALUES, values="too many")
    put(out, b"}", 1)
    return True


cdef int put_value(Text* out, Reader r, bint whole, bint single) except -1:
    """A column's value: union of null, long, double, string, bytes."""
    cdef unsigned char branch = read_byte(r)
    cdef double real
    cdef long long size
    cdef Py_ssize_t start
    if branch == NULL_BRANCH:
        return put(out, b"null", 4)
    if branch == LONG_BRANCH:
        return put_integer(out, read_long(r))
    if branch == DOUBLE_BRANCH:
        start = r.at
        skip(r, 8)
        memcpy(&real, &r.data[start], 8)
        if real - real != 0:
            raise ValueError("a number that MySQL does not have")
        return put_single(out, real) if single else put_double(out, real)
    if branch != STRING_BRANCH and branch != BYTES_BRANCH:
        raise ValueError("a value of a type that the schema does not have")
    size = read_long(r)
    start = r.at
    skip(r, size)
    cdef const unsigned char* data = &r.data[start] if size else <const unsigned char*>b""
    if branch == BYTES_BRANCH:
        return put_bytes(out, data, <Py_ssize_t>size)
    if whole:
        return put_whole(out, data, <Py_ssize_t>size)
    return put_string(out, data, <Py_ssize_t>size)
