"""The keys of rows, by their encoded images: which rows other rows replace. Compiled: a load asks for each of its rows.

A key is the bytes of its columns' values in the key's order, as in `table_changes`.
"""

from array import array

from cpython.bytes cimport PyBytes_FromStringAndSize

from connector.errors import Unsupported
from connector.log.format.avro_reader cimport Reader, read_block, read_byte, skip_value
from connector.log.transaction.batch cimport Rows


def keys(Rows rows not None):
    """Return the keys of rows of a table that has one, before and after their change.

    Raises:
        Unsupported: an image lacks a column of the key.
    """
    found = set()
    cdef Reader r = reader(rows)
    cdef Py_ssize_t row
    for row in range(rows.count):
        before, after = image_key(r, rows, rows.before), image_key(r, rows, rows.after)
        if before is None and after is None:
            raise Unsupported("a row image lacks the columns of the key", table=rows.layout.name)
        found.add(before)
        found.add(after)
    found.discard(None)
    return found


def without(Rows rows not None, set left_out not None):
    """Return the rows whose keys are not among these; the rows themselves if none is.

    Args:
        rows: rows of a table that has a key, with one image each.
        left_out: keys.
    """
    cdef Reader r = reader(rows)
    cdef Py_ssize_t row, start
    cdef bytearray data = bytearray()
    ends = array("Q")
    for row in range(rows.count):
        start = r.at
        before, after = image_key(r, rows, rows.before), image_key(r, rows, rows.after)
        if (before if after is None else after) not in left_out:
            data += rows.data[start : r.at]
            ends.append(len(data))
    if len(ends) == rows.count:
        return rows
    return Rows(rows.layout, rows.action, bytes(data), ends, rows.before, rows.after, rows.query)


cdef Reader reader(Rows rows):
    cdef Reader r = Reader.__new__(Reader)
    r.data = rows.data
    r.at = 0
    r.end = len(rows.data)
    return r


cdef bytes image_key(Reader r, Rows rows, bytes present):
    """Go past an image, and return its key; None if there is no image, or it lacks a column of the key."""
    cdef Py_ssize_t column, start, width = len(rows.layout.columns)
    cdef long long count
    cdef dict parts = {}
    if read_byte(r) == 0:
        return None
    count = read_block(r)
    cdef bint some = count > 0  # an empty array has one block, its end
    for column in range(width):
        if present and not present[column >> 3] >> (column & 7) & 1:
            continue
        start = r.at
        skip_value(r)
        parts[column] = PyBytes_FromStringAndSize(<const char *>&r.data[start], r.at - start)
    if some and read_byte(r) != 0:
        raise ValueError("an image in several blocks")
    found = [parts.get(column) for column in rows.layout.key]
    return None if None in found else b"".join(found)
