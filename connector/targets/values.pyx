"""Row images as tuples of Python values: None, int, float, str, bytes."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8

from connector.log.format.avro_values cimport (
    BYTES_VALUE, DOUBLE_VALUE, LONG_VALUE, NULL_VALUE, STRING_VALUE, Cursor, Value, read_value,
)


cdef object _python(Value* value):
    if value.branch == LONG_VALUE:
        return value.whole
    if value.branch == DOUBLE_VALUE:
        return value.real
    if value.branch == STRING_VALUE:
        return PyUnicode_DecodeUTF8(<const char*>value.text, value.size, NULL)
    if value.branch == BYTES_VALUE:
        return PyBytes_FromStringAndSize(<const char*>value.text, value.size)
    return None


def rows(const unsigned char[::1] data, const unsigned long long[::1] ends, Py_ssize_t columns, selected=None):
    """Decode images.

    Args:
        data, ends: of `connector.log.compact.net_changes.Images`.
        columns: the number of values of an image.
        selected: indexes of the values to return, in order; None for all.

    Returns:
        A list of tuples, one per image.

    Raises:
        ValueError: the bytes are not `columns` values per image.
    """
    cdef Py_ssize_t image, column, start = 0
    cdef Cursor cursor
    cdef Value value
    cdef list found = []
    cdef list values
    cdef list order = None if selected is None else list(selected)
    cdef set needed = set(range(columns) if order is None else order)
    cdef list keep = [column in needed for column in range(columns)]
    if needed and (min(needed) < 0 or max(needed) >= columns):
        raise ValueError("a selected column is not in the image")
    cursor.data = NULL
    if data.shape[0]:
        cursor.data = &data[0]
    for image in range(ends.shape[0]):
        if ends[image] > <unsigned long long>data.shape[0] or <Py_ssize_t>ends[image] < start:
            raise ValueError("an image ends outside of the data")
        cursor.at = start
        cursor.end = <Py_ssize_t>ends[image]
        values = []
        for column in range(columns):
            read_value(&cursor, &value)
            values.append(_python(&value) if keep[column] else None)
        if cursor.at != cursor.end:
            raise ValueError("an image has more values than columns")
        start = cursor.end
        found.append(tuple(values) if order is None else tuple([values[column] for column in order]))
    return found
