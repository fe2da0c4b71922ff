"""Full images of inserts that lack columns: absent columns get their defaults."""

from array import array

from cpython.bytes cimport PyBytes_AsString
from libc.string cimport memcpy

from connector.log.format.avro_values cimport BYTES_VALUE, Cursor, Value, read_value


class NoDefault(ValueError):
    """Raised when an absent column has no known default.

    Args:
        image: index of the image.
        column: index of the column.
    """

    def __init__(self, image, column):
        super().__init__(f"column {column} of image {image}")
        self.image = image
        self.column = column


def with_defaults(
    const unsigned char[::1] data, const unsigned long long[::1] ends, Py_ssize_t columns, list defaults not None
):
    """Make full images of partial ones.

    Args:
        data, ends: of the `added` of `connector.log.compact.net_changes.Partial`.
        columns: the number of values of an image before its bitmap.
        defaults: the default of each column in Avro; None if it is not known.

    Returns:
        Data and ends of full images.

    Raises:
        NoDefault: a column without a known default is absent.
        ValueError: the bytes are not such images.
    """
    cdef Py_ssize_t image, column, start = 0, used = 0, room = data.shape[0], most = 0
    cdef Cursor cursor
    cdef Value value
    cdef Py_ssize_t[::1] starts = array("q", bytes(8 * (columns + 1)))
    cdef bytes default
    cdef unsigned char[::1] out
    if len(defaults) != columns:
        raise ValueError("every column has a default or none")
    for default in defaults:
        most += 0 if default is None else len(default)
    made = bytearray(room + most * ends.shape[0])
    made_ends = array("Q", bytes(8 * ends.shape[0]))
    out = made
    cursor.data = &data[0] if room else NULL
    for image in range(ends.shape[0]):
        if ends[image] > <unsigned long long>room or <Py_ssize_t>ends[image] < start:
            raise ValueError("an image ends outside of the data")
        cursor.at = start
        cursor.end = <Py_ssize_t>ends[image]
        for column in range(columns):
            starts[column] = cursor.at
            read_value(&cursor, &value)
        starts[columns] = cursor.at
        read_value(&cursor, &value)
        if value.branch != BYTES_VALUE or value.size < (columns + 7) // 8 or cursor.at != cursor.end:
            raise ValueError("an image has no bitmap of its columns")
        for column in range(columns):
            if value.text[column >> 3] >> (column & 7) & 1:
                used = copied(out, used, &data[starts[column]], starts[column + 1] - starts[column])
                continue
            default = defaults[column]
            if default is None:
                raise NoDefault(image, column)
            used = copied(out, used, <const unsigned char*>PyBytes_AsString(default), len(default))
        made_ends[image] = used
        start = cursor.end
    return bytes(made[:used]), made_ends


cdef Py_ssize_t copied(unsigned char[::1] out, Py_ssize_t at, const unsigned char* text, Py_ssize_t size) except -1:
    if size > out.shape[0] - at:
        raise ValueError("images exceed the buffer")
    if size:
        memcpy(&out[at], text, size)
    return at + size
