"""Encodes row images in PostgreSQL's binary COPY format, directly from their Avro bytes.

The format is PostgreSQL's manual, "COPY", "Binary Format": per row a count of fields, per field a length (-1: NULL)
and bytes as the type's receive function takes them; all numbers big-endian. The types' forms are those of the
receive functions in its source (src/backend/utils/adt).

One function per kind of value, in `copy_*.pyx`. Each refuses values that PostgreSQL's type cannot store exactly.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free

from cpython.bytes cimport PyBytes_FromStringAndSize

from connector.log.format.avro_values cimport NULL_VALUE, STRING_VALUE, Cursor, Value, read_value
from connector.targets.postgres.copy_buffer cimport Buffer, put_field, put_number, reserve
from connector.targets.postgres.copy_numbers cimport put_float, put_integer, put_numeric
from connector.targets.postgres.copy_text cimport put_bits, put_bytes, put_text
from connector.targets.postgres.copy_times cimport put_date, put_interval, put_timestamp

cpdef enum CopyKind:
    INT2
    INT4
    INT8
    FLOAT4
    FLOAT8
    NUMERIC
    TEXT
    BYTEA
    DATE
    TIMESTAMP
    INTERVAL
    BIT

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"


class ValueDoesNotFit(ValueError):
    """Raised for a value that its column cannot store.

    Args:
        image: index of the image.
        column: index of the value in the image.
        reason: the cause in a word: kind, form, range, precision, digits, bits, size, zero_character, zero_date,
            calendar or clock.
        message: the cause as the end of a sentence.
    """

    def __init__(self, image, column, reason, message):
        super().__init__(message)
        self.image = image
        self.column = column
        self.reason = reason


cdef int put_value(Buffer* out, Value* value, int kind, int bits) except -1:
    if value.branch == NULL_VALUE:
        return put_field(out, -1)
    if kind == INT2:
        return put_integer(out, value, 2)
    if kind == INT4:
        return put_integer(out, value, 4)
    if kind == INT8:
        return put_integer(out, value, 8)
    if kind == FLOAT4:
        return put_float(out, value, 4)
    if kind == FLOAT8:
        return put_float(out, value, 8)
    if kind == NUMERIC:
        return put_numeric(out, value)
    if kind == BYTEA:
        return put_bytes(out, value)
    if kind == BIT:
        return put_bits(out, value, bits)
    if kind == TEXT:
        return put_text(out, value)
    if value.branch != STRING_VALUE:
        raise ValueError("kind", "is no text")
    if kind == DATE:
        return put_date(out, value)
    if kind == TIMESTAMP:
        return put_timestamp(out, value)
    return put_interval(out, value)


def copy_rows(
    const unsigned char[::1] data,
    const unsigned long long[::1] ends,
    Py_ssize_t first,
    const unsigned char[::1] kinds,
    const unsigned char[::1] bits,
    const unsigned char[::1] selected,
    int operation,
    Py_ssize_t limit,
):
    """Rows of COPY: the operation's letter, if there is one, as a field of its own, then a field per value.

    Args:
        data, ends: of `connector.log.compact.net_changes.Images`.
        first: index of the first image.
        kinds: a `CopyKind` per value.
        bits: per value, the number of bits of a BIT.
        selected: per value, 1 to send it, 0 to send NULL.
        operation: the letter; 0: none.
        limit: bytes after which no further image is started.

    Returns:
        The bytes, and the index of the next image.

    Raises:
        ValueDoesNotFit: a value that its column cannot store.
        ValueError: the bytes are not a value per kind and image.
    """
    cdef Py_ssize_t columns = kinds.shape[0], image = first, column = 0
    cdef Py_ssize_t start
    cdef Cursor cursor
    cdef Value value
    cdef Buffer out
    if bits.shape[0] != columns or selected.shape[0] != columns:
        raise ValueError("kinds, bits and selected are of one length")
    start = 0 if first == 0 else <Py_ssize_t>ends[first - 1]
    cursor.data = NULL
    if data.shape[0]:
        cursor.data = &data[0]
    out.data = NULL
    out.size = 0
    out.room = 0
    try:
        reserve(&out, limit + 4096)
        while image < ends.shape[0] and out.size < limit:
            if ends[image] > <unsigned long long>data.shape[0] or <Py_ssize_t>ends[image] < start:
                raise ValueError("an image ends outside of the data")
            cursor.at = start
            cursor.end = <Py_ssize_t>ends[image]
            put_number(&out, <uint64_t>(columns + (operation != 0)), 2)
            if operation:
                put_field(&out, 1)
                put_number(&out, <uint64_t>operation, 1)
            for column in range(columns):
                read_value(&cursor, &value)
                if not selected[column]:
                    put_field(&out, -1)
                    continue
                try:
                    put_value(&out, &value, kinds[column], bits[column])
                except ValueError as error:
                    raise ValueDoesNotFit(image, column, *error.args) from None
            if cursor.at != cursor.end:
                raise ValueError("an image has more values than columns")
            start = cursor.end
            image += 1
        return PyBytes_FromStringAndSize(<const char*>out.data, out.size), image
    finally:
        free(out.data)
