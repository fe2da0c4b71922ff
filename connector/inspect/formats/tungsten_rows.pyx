"""Formats rows of a batch in Tungsten's layout, in one pass.

A row is its number, the columns of its new image, and its key: of the old image, or of the new one if there is no old
one; without a key the whole old image.
"""

from cpython.bytes cimport PyBytes_AsString, PyBytes_Size
from libc.stdlib cimport free
from libc.string cimport memset

from connector.inspect.formats.tungsten import shown_text

from connector.inspect.formats.rows cimport at_end, end_image, has_image, is_present, present_count, to_row
from connector.log.format.text cimport Text, bytes_of, put, put_double, put_hexadecimal, put_integer
from connector.log.format.avro_values cimport (
    BYTES_VALUE,
    DOUBLE_VALUE,
    LONG_VALUE,
    NULL_VALUE,
    Cursor,
    Value,
    read_value,
)


cdef class TungstenRows:
    """Formats the rows of one table.

    Args:
        row: the text before a row's number.
        columns, keys: per column the text before its value.
        key: per column True if it is in the key.
    """

    cdef bytes row
    cdef list columns, keys
    cdef bytes key
    cdef bint keyed
    cdef Text text

    def __cinit__(self, bytes row, list columns, list keys, list key):
        memset(&self.text, 0, sizeof(Text))
        if not len(columns) == len(keys) == len(key):
            raise ValueError("every column is a column and perhaps a key")
        self.row = row
        self.columns = columns
        self.keys = keys
        self.key = bytes(key)
        self.keyed = any(key)

    def __dealloc__(self):
        free(self.text.data)

    def printed(self, const unsigned char[::1] data, ends, const unsigned char[::1] before=b"",
                const unsigned char[::1] after=b""):
        """The rows, with a line break after each line.

        Args:
            data, ends, before, after: the fields of `connector.log.transaction.batch.Rows`. Absent columns are omitted.

        Returns:
            UTF-8.

        Raises:
            ValueError: the bytes are not rows of this table.
        """
        cdef const unsigned char[::1] row_ends = memoryview(ends).cast("B")
        cdef Cursor cursor, old, new
        cdef Py_ssize_t row, start = 0
        cdef Py_ssize_t width = len(self.columns)
        cdef Py_ssize_t old_width = present_count(before, width)
        cdef Py_ssize_t new_width = present_count(after, width)
        cdef bint had, has
        self.text.size = 0
        for row in range(row_ends.shape[0] // 8):
            to_row(&cursor, data, row_ends, row, start)
            start = cursor.end
            had = has_image(&cursor, old_width)
            old = cursor
            if had:
                self.step_over(&cursor, old_width)
            has = has_image(&cursor, new_width)
            new = cursor
            if has:
                self.step_over(&cursor, new_width)
            at_end(&cursor)
            self.word(self.row)
            put_integer(&self.text, row)
            put(&self.text, b"\n", 1)
            if has:
                self.lines(&new, self.columns, True, after)
            if had:
                self.lines(&old, self.keys, not self.keyed, before)
            elif has:
                self.lines(&new, self.keys, False, after)
        return bytes_of(&self.text)

    cdef int step_over(self, Cursor* cursor, Py_ssize_t width) except -1:
        cdef Value value
        for _ in range(width):
            read_value(cursor, &value)
        return end_image(cursor)

    cdef int word(self, bytes word) except -1:
        return put(&self.text, <const unsigned char*>PyBytes_AsString(word), PyBytes_Size(word))

    cdef int text_value(self, const unsigned char* text, Py_ssize_t size) except -1:
        """Text, with control characters escaped by `shown_text`."""
        cdef Py_ssize_t at
        for at in range(size):
            if text[at] < 0x20 and text[at] != 9 and text[at] != 10 or text[at] == 0x7F or (
                text[at] == 0xC2 and at + 1 < size and text[at + 1] < 0xA0
            ):
                return self.word(shown_text(text[:size].decode()).encode())
        return put(&self.text, text, size)

    cdef int lines(self, Cursor* image, list words, bint every, const unsigned char[::1] present) except -1:
        """A line per column, or per column of the key; the caller's cursor does not move."""
        cdef Cursor cursor = image[0]
        cdef const unsigned char* key = self.key
        cdef Py_ssize_t column
        cdef Value value
        for column in range(len(words)):
            if not is_present(present, column):
                continue
            read_value(&cursor, &value)
            if not (every or key[column]):
                continue
            self.word(words[column])
            if value.branch == NULL_VALUE:
                put(&self.text, b"NULL", 4)
            elif value.branch == LONG_VALUE:
                put_integer(&self.text, value.whole)
            elif value.branch == DOUBLE_VALUE:
                put_double(&self.text, value.real)
            elif value.branch == BYTES_VALUE:
                put(&self.text, b"0x", 2)
                put_hexadecimal(&self.text, value.text, value.size)
            else:
                self.text_value(value.text, value.size)
            put(&self.text, b"\n", 1)
        return 0
