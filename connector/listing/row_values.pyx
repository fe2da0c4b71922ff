"""The rows of a piece as Python values: None, int, float, str, bytes."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8

from connector.listing.rows cimport at_end, end_image, has_image, to_row
from connector.write.avro cimport (
    BYTES_VALUE,
    DOUBLE_VALUE,
    LONG_VALUE,
    NULL_VALUE,
    Cursor,
    Value,
    read_value,
)


def row_values(const unsigned char[::1] data, ends, Py_ssize_t width):
    """Decode rows.

    Args:
        data, ends: of `connector.thl.piece.Rows`.
        width: how many columns the table has.

    Returns:
        Per row `{"before": [value …] | None, "after": …}`, as an Avro library gives them.

    Raises:
        ValueError: the bytes are not rows of such a table.
    """
    cdef const unsigned char[::1] places = memoryview(ends).cast("B")
    cdef Cursor cursor
    cdef Py_ssize_t row, start = 0
    cdef list found = []
    for row in range(places.shape[0] // 8):
        to_row(&cursor, data, places, row, start)
        before = image(&cursor, width)
        found.append({"before": before, "after": image(&cursor, width)})
        at_end(&cursor)
        start = cursor.end
    return found


cdef object image(Cursor* cursor, Py_ssize_t width):
    cdef Value value
    cdef list found = []
    if not has_image(cursor, width):
        return None
    for _ in range(width):
        read_value(cursor, &value)
        if value.branch == NULL_VALUE:
            found.append(None)
        elif value.branch == LONG_VALUE:
            found.append(value.whole)
        elif value.branch == DOUBLE_VALUE:
            found.append(value.real)
        elif value.branch == BYTES_VALUE:
            found.append(PyBytes_FromStringAndSize(<const char*>value.text, value.size))
        else:
            found.append(PyUnicode_DecodeUTF8(<const char*>value.text, value.size, NULL))
    end_image(cursor)
    return found
