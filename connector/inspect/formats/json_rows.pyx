# cython: cdivision=True
"""Formats rows of a batch as JSON: `{"before":{…}|null,"after":{…}|null}`, in one pass.

A value's JSON type follows from its Avro type: a long or double is a number, a string is a string, bytes are
`{"base64":"…"}`. Two kinds of columns need a flag: integers that may be above 2**63, which the log holds as text, and
floats, which it holds as doubles.
"""

from libc.stdlib cimport calloc, free
from libc.string cimport memset

from connector.inspect.formats.rows cimport at_end, end_image, has_image, is_present, present_count, to_row
from connector.log.format.text cimport (
    bytes_of,
    Text,
    put,
    put_bytes,
    put_double,
    put_integer,
    put_single,
    put_string,
    put_whole,
)
from connector.log.format.avro_values cimport (
    BYTES_VALUE,
    DOUBLE_VALUE,
    LONG_VALUE,
    NULL_VALUE,
    Cursor,
    Value,
    read_value,
)


cdef class JsonRows:
    """Formats the rows of one table.

    Args:
        keys: per column the text before its value: `"id":`.
        whole: per column True if a string is an integer.
        single: per column True if a double was a float.
    """

    cdef Py_ssize_t width
    cdef bytes keys
    cdef Py_ssize_t* key_ends
    cdef bytes whole, single
    cdef Text text

    def __cinit__(self, list keys, list whole, list single):
        cdef Py_ssize_t end = 0
        memset(&self.text, 0, sizeof(Text))
        self.width = len(keys)
        if len(whole) != self.width or len(single) != self.width:
            raise ValueError("every column has a key and its kinds")
        self.key_ends = <Py_ssize_t*>calloc(max(self.width, 1), sizeof(Py_ssize_t))
        if self.key_ends == NULL:
            raise MemoryError
        keys = [(b"," if column else b"{") + key for column, key in enumerate(keys)]
        for column, key in enumerate(keys):
            end += len(key)
            self.key_ends[column] = end
        self.keys = b"".join(keys)
        self.whole = bytes(whole)
        self.single = bytes(single)

    def __dealloc__(self):
        free(self.key_ends)
        free(self.text.data)

    def printed(self, const unsigned char[::1] data, ends, const unsigned char[::1] before=b"",
                const unsigned char[::1] after=b""):
        """The rows, with commas between them.

        Args:
            data, ends, before, after: the fields of `connector.log.transaction.batch.Rows`. Absent columns are omitted.

        Returns:
            UTF-8, no line break in it.

        Raises:
            ValueError: the bytes are not rows of this table.
        """
        cdef const unsigned char[::1] row_ends = memoryview(ends).cast("B")
        cdef Cursor cursor
        cdef Py_ssize_t row, start = 0
        self.text.size = 0
        for row in range(row_ends.shape[0] // 8):
            to_row(&cursor, data, row_ends, row, start)
            put(&self.text, b',{"before":' if row else b'{"before":', 11 if row else 10)
            self.image(&cursor, before)
            put(&self.text, b',"after":', 9)
            self.image(&cursor, after)
            put(&self.text, b"}", 1)
            at_end(&cursor)
            start = cursor.end
        return bytes_of(&self.text)

    cdef int image(self, Cursor* cursor, const unsigned char[::1] present) except -1:
        cdef const unsigned char* keys = self.keys
        cdef const unsigned char* whole = self.whole
        cdef const unsigned char* single = self.single
        cdef Py_ssize_t column, from_ = 0, count = present_count(present, self.width)
        cdef bint every = count == self.width
        cdef bint first = True
        cdef Value value
        if not has_image(cursor, count):
            return put(&self.text, b"null", 4)
        for column in range(self.width):
            if every or is_present(present, column):
                put(&self.text, b"{" if first else b",", 1)
                put(&self.text, keys + from_ + 1, self.key_ends[column] - from_ - 1)
                first = False
            from_ = self.key_ends[column]
            if not (every or is_present(present, column)):
                continue
            read_value(cursor, &value)
            if value.branch == NULL_VALUE:
                put(&self.text, b"null", 4)
            elif value.branch == LONG_VALUE:
                put_integer(&self.text, value.whole)
            elif value.branch == DOUBLE_VALUE:
                if value.real - value.real != 0:
                    self.not_finite(value.real)
                elif single[column]:
                    put_single(&self.text, value.real)
                else:
                    put_double(&self.text, value.real)
            elif value.branch == BYTES_VALUE:
                put_bytes(&self.text, value.text, value.size)
            elif whole[column]:
                put_whole(&self.text, value.text, value.size)
            else:
                put_string(&self.text, value.text, value.size)
        end_image(cursor)
        return put(&self.text, b"{}", 2) if first else put(&self.text, b"}", 1)

    cdef int not_finite(self, double number) except -1:
        """A number that JSON and MySQL lack, as a string: only damage or another program writes it."""
        if number != number:
            return put(&self.text, b'"NaN"', 5)
        return put(&self.text, b'"Infinity"', 10) if number > 0 else put(&self.text, b'"-Infinity"', 11)
