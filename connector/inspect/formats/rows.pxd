"""Reads rows of a batch: Avro's `Row` records (schemas/fragment.avsc), before and after, one after the other."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from connector.log.format.avro_values cimport Cursor, read_long


cdef inline int to_row(Cursor* cursor, const unsigned char[::1] data, const unsigned char[::1] ends, Py_ssize_t row,
                       Py_ssize_t start) except -1:
    """Set the cursor on the bytes of a row; `ends` are the machine's 64-bit numbers, `start` the last one's end."""
    cdef uint64_t end
    if row < 0 or 8 * row + 8 > ends.shape[0]:
        raise ValueError("a row without an end")
    memcpy(&end, &ends[8 * row], 8)
    if end > <uint64_t>data.shape[0] or <Py_ssize_t>end < start:
        raise ValueError("a row ends outside of the data")
    cursor.data = &data[0] if data.shape[0] else NULL
    cursor.at = start
    cursor.end = <Py_ssize_t>end
    return 0


cdef inline int at_end(Cursor* cursor) except -1:
    """Check that the row is used up."""
    if cursor.at != cursor.end:
        raise ValueError("a row is longer than its images")
    return 0


cdef inline bint is_present(const unsigned char[::1] present, Py_ssize_t column) except -1:
    """True if an image has a column: one bit each, least significant first; no bits: it has all."""
    if present.shape[0] == 0:
        return True
    if column >> 3 >= present.shape[0]:
        raise ValueError("the bits of an image's columns are missing")
    return present[column >> 3] >> (column & 7) & 1


cdef inline Py_ssize_t present_count(const unsigned char[::1] present, Py_ssize_t width) except -1:
    """Number of values of an image."""
    cdef Py_ssize_t column, count = 0
    if present.shape[0] == 0:
        return width
    for column in range(width):
        count += is_present(present, column)
    return count


cdef inline bint has_image(Cursor* cursor, Py_ssize_t width) except -1:
    """Step to the first value of the next image; False if it is null.

    An image is a union of null and an array; the encoder writes the array as one block.
    """
    cdef long long number
    read_long(cursor, &number)
    if number == 0:
        return False
    if number != 1:
        raise ValueError("an image is neither there nor absent")
    if width == 0:  # an empty array is its end alone
        return True
    read_long(cursor, &number)
    if number != width:
        raise ValueError("an image has another number of values than its table has columns")
    return True


cdef inline int end_image(Cursor* cursor) except -1:
    """Step over the end of the array."""
    cdef long long number
    read_long(cursor, &number)
    if number != 0:
        raise ValueError("an image has more values than its table has columns")
    return 0
