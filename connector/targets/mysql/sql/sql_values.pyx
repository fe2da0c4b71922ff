"""Row images as MySQL reads them, directly from their Avro bytes.

- As literals of its SQL: `(1,'a',NULL),(2,_binary'b',3e0)`. Text and bytes are quoted as the manual's "String Literals"
  has them, for a session whose sql_mode lacks NO_BACKSLASH_ESCAPES and whose character_set_client is utf8mb4: bytes
  above 0x7F are written as they are.
- As the lines of a file for LOAD DATA with its own terminators and CHARACTER SET utf8mb4 or binary: values are separated
  by tabs, `\\N` is NULL, bytes are hexadecimal digits, or with `RAW` themselves.

One function per kind of value.
"""

from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8

from connector.log.format.avro_values cimport (
    BYTES_VALUE, DOUBLE_VALUE, LONG_VALUE, NULL_VALUE, STRING_VALUE, Cursor, Value, read_value,
)

from connector.targets.mysql.sql.json_exact import json_literal, keeps_numbers

cpdef enum LiteralKind:
    NUMBER  # exact numbers: digits
    REAL  # float and double
    TEXT
    BYTES
    BITS  # a number
    JSON  # text; a number that MySQL would print otherwise makes it an expression
    YEAR  # of lines alone: four digits, for the text '0' is the year 2000
    RAW  # of lines alone: bytes, in a file of CHARACTER SET binary


class NotALiteral(ValueError):
    """Raised for a value that its column's type does not have.

    Args:
        image: index of the image.
        column: index of the value in the image.
    """

    def __init__(self, image, column):
        super().__init__(f"value {column} of image {image}")
        self.image = image
        self.column = column


cdef struct Buffer:
    unsigned char* data
    Py_ssize_t size
    Py_ssize_t room


cdef int reserve(Buffer* out, Py_ssize_t more) except -1:
    cdef Py_ssize_t wanted
    cdef void* grown
    if out.size + more > out.room:
        wanted = max(out.room * 2, out.size + more)
        grown = realloc(out.data, wanted)
        if grown == NULL:
            raise MemoryError
        out.data = <unsigned char*>grown
        out.room = wanted
    return 0


cdef int put(Buffer* out, const unsigned char* data, Py_ssize_t size) except -1:
    reserve(out, size)
    memcpy(out.data + out.size, data, size)
    out.size += size
    return 0


cdef int put_quoted(Buffer* out, const unsigned char* text, Py_ssize_t size) except -1:
    """A quoted string: each byte that ends it or begins an escape is escaped."""
    cdef Py_ssize_t at
    cdef unsigned char byte
    cdef unsigned char* into
    reserve(out, 2 * size + 2)
    into = out.data + out.size
    into[0] = b"'"
    into += 1
    for at in range(size):
        byte = text[at]
        if byte == b"'" or byte == b"\\":
            into[0] = b"\\"
            into[1] = byte
            into += 2
        elif byte == 0:
            into[0] = b"\\"
            into[1] = b"0"
            into += 2
        else:
            into[0] = byte
            into += 1
    into[0] = b"'"
    out.size = into + 1 - out.data
    return 0


cdef int put_whole(Buffer* out, long long number) except -1:
    cdef char digits[32]
    cdef int size = snprintf(digits, sizeof(digits), "%lld", number)
    return put(out, <unsigned char*>digits, size)


cdef int put_real(Buffer* out, double number) except -1:
    """A double with the 17 digits that name it alone. With an exponent: a decimal would lose the sign of -0.0."""
    cdef char digits[48]
    cdef int size
    if number != number or number - number != 0:
        return 1
    size = snprintf(digits, sizeof(digits), "%.16e", number)
    put(out, <unsigned char*>digits, size)
    return 0


cdef int put_digits(Buffer* out, const unsigned char* text, Py_ssize_t size) except -1:
    """A number that the log has as text: nothing but digits, a sign and a point gets into the statement."""
    cdef Py_ssize_t at
    cdef unsigned char byte
    if size == 0:
        return 1
    for at in range(size):
        byte = text[at]
        if not (b"0" <= byte <= b"9" or byte == b"." or (at == 0 and byte == b"-")):
            return 1
    put(out, text, size)
    return 0


cdef int put_bits(Buffer* out, const unsigned char* text, Py_ssize_t size) except -1:
    """A BIT as a number."""
    cdef unsigned long long number = 0
    cdef Py_ssize_t at
    cdef char digits[32]
    if size > 8:
        return 1
    for at in range(size):
        number = number << 8 | text[at]
    put(out, <unsigned char*>digits, snprintf(digits, sizeof(digits), "%llu", number))
    return 0


cdef bint is_plain(const unsigned char* text, Py_ssize_t size):
    """Return whether a document has no digit before a point, and no long number: strings count, too."""
    cdef Py_ssize_t at, digits = 0
    for at in range(size):
        if b"0" <= text[at] <= b"9":
            digits += 1
            if digits > 18:
                return False
        elif text[at] == b"." and digits:
            return False
        else:
            digits = 0
    return True


cdef int put_document(Buffer* out, Value* value) except -1:
    cdef bytes made
    if is_plain(value.text, value.size):
        return put_quoted(out, value.text, value.size)
    made = json_literal(PyUnicode_DecodeUTF8(<const char*>value.text, value.size, NULL)).encode()
    return put(out, <const unsigned char*>PyBytes_AsString(made), len(made))


cdef int put_value(Buffer* out, Value* value, int kind) except -1:
    """Write a value; return 1 if its kind does not have it."""
    if value.branch == NULL_VALUE:
        put(out, <const unsigned char*>b"NULL", 4)
        return 0
    if kind == REAL:
        return put_real(out, value.real) if value.branch == DOUBLE_VALUE else 1
    if kind == BITS:
        return put_bits(out, value.text, value.size) if value.branch == BYTES_VALUE else 1
    if value.branch == LONG_VALUE:
        put_whole(out, value.whole)
        return 0
    if value.branch == DOUBLE_VALUE:
        return 1
    if kind == NUMBER:
        return put_digits(out, value.text, value.size) if value.branch == STRING_VALUE else 1
    if kind == JSON and value.branch == STRING_VALUE:
        return put_document(out, value)
    if value.branch == BYTES_VALUE:  # in a text column: bytes that mean nothing in its character set
        put(out, <const unsigned char*>b"_binary", 7)
    put_quoted(out, value.text, value.size)
    return 0


cdef int put_escaped(Buffer* out, const unsigned char* text, Py_ssize_t size) except -1:
    """A text or bytes of a line: what ends it, or begins an escape, is escaped."""
    cdef Py_ssize_t at
    cdef unsigned char byte
    cdef unsigned char* into
    reserve(out, 2 * size)
    into = out.data + out.size
    for at in range(size):
        byte = text[at]
        if byte == b"\\" or byte == b"\t" or byte == b"\n":
            into[0] = b"\\"
            into[1] = b"t" if byte == b"\t" else b"n" if byte == b"\n" else byte
            into += 2
        else:
            into[0] = byte
            into += 1
    out.size = into - out.data
    return 0


cdef int put_hex(Buffer* out, const unsigned char* text, Py_ssize_t size) except -1:
    cdef Py_ssize_t at
    cdef const unsigned char* digits = <const unsigned char*>b"0123456789ABCDEF"
    cdef unsigned char* into
    reserve(out, 2 * size)
    into = out.data + out.size
    for at in range(size):
        into[2 * at] = digits[text[at] >> 4]
        into[2 * at + 1] = digits[text[at] & 15]
    out.size += 2 * size
    return 0


cdef int put_year(Buffer* out, long long number) except -1:
    cdef char digits[32]
    if not 0 <= number <= 9999:
        return 1
    return put(out, <unsigned char*>digits, snprintf(digits, sizeof(digits), "%04lld", number))


cdef int put_field(Buffer* out, Value* value, int kind) except -1:
    """Write a value of a line; return 1 if a line cannot have it, though a literal may."""
    if value.branch == NULL_VALUE:
        return put(out, <const unsigned char*>b"\\N", 2)
    if kind == REAL and value.branch == DOUBLE_VALUE:
        return put_real(out, value.real)
    if kind == NUMBER and value.branch == LONG_VALUE:
        return put_whole(out, value.whole)
    if kind == NUMBER and value.branch == STRING_VALUE:
        return put_digits(out, value.text, value.size)
    if kind == YEAR and value.branch == LONG_VALUE:
        return put_year(out, value.whole)
    if (kind == TEXT and value.branch == STRING_VALUE) or (kind == RAW and value.branch == BYTES_VALUE):
        return put_escaped(out, value.text, value.size)
    if (kind == BYTES or kind == BITS) and value.branch == BYTES_VALUE:
        return put_hex(out, value.text, value.size)
    if kind == JSON and value.branch == STRING_VALUE:
        if is_plain(value.text, value.size) or keeps_numbers(
            PyUnicode_DecodeUTF8(<const char*>value.text, value.size, NULL)
        ):
            return put_escaped(out, value.text, value.size)
    return 1


def value_rows(
    const unsigned char[::1] data,
    const unsigned long long[::1] ends,
    Py_ssize_t first,
    const unsigned char[::1] kinds,
    list order not None,
    Py_ssize_t limit,
    Py_ssize_t most,
):
    """Write images as lists of literals.

    Args:
        data, ends: of `connector.log.compact.net_changes.Images`.
        first: the first image.
        kinds: the `LiteralKind` of each value of an image.
        order: indexes of the values to write, in order.
        limit: bytes after which no further image is written.
        most: the largest number of images.

    Returns:
        The literals, and the index of the first image that is not in them.

    Raises:
        NotALiteral: a value that its column's type does not have.
        ValueError: the bytes are not such images.
    """
    return write_rows(data, ends, first, kinds, order, limit, most, False)


def line_rows(
    const unsigned char[::1] data,
    const unsigned long long[::1] ends,
    Py_ssize_t first,
    const unsigned char[::1] kinds,
    list order not None,
    Py_ssize_t limit,
):
    """Write images as lines, up to the first that has a value which only a literal may have.

    Args, returns and raises as `value_rows`, but for `NotALiteral`.
    """
    return write_rows(data, ends, first, kinds, order, limit, ends.shape[0], True)


cdef tuple write_rows(
    const unsigned char[::1] data,
    const unsigned long long[::1] ends,
    Py_ssize_t first,
    const unsigned char[::1] kinds,
    list order,
    Py_ssize_t limit,
    Py_ssize_t most,
    bint lines,
):
    cdef Py_ssize_t image, column, place, line, columns = kinds.shape[0], start = 0
    cdef Py_ssize_t written = len(order)
    cdef Cursor cursor
    cdef Buffer out
    cdef Value* values = <Value*>malloc(max(columns, 1) * sizeof(Value))
    cdef Py_ssize_t* places = <Py_ssize_t*>malloc(max(written, 1) * sizeof(Py_ssize_t))
    out.data, out.size, out.room = NULL, 0, 0
    try:
        if values == NULL or places == NULL:
            raise MemoryError
        for place in range(written):
            column = order[place]
            if column < 0 or column >= columns:
                raise ValueError("a selected column is not in the image")
            places[place] = column
        if first < 0 or first > ends.shape[0]:
            raise ValueError("there is no such image")
        cursor.data = &data[0] if data.shape[0] else NULL
        start = 0 if first == 0 else <Py_ssize_t>ends[first - 1]
        image = first
        while image < ends.shape[0] and image - first < most and out.size < limit:
            if ends[image] > <unsigned long long>data.shape[0] or <Py_ssize_t>ends[image] < start:
                raise ValueError("an image ends outside of the data")
            cursor.at = start
            cursor.end = <Py_ssize_t>ends[image]
            for column in range(columns):
                read_value(&cursor, &values[column])
            if cursor.at != cursor.end:
                raise ValueError("an image has more values than columns")
            line = out.size
            if lines:
                for place in range(written):
                    if place:
                        put(&out, <const unsigned char*>b"\t", 1)
                    if put_field(&out, &values[places[place]], kinds[places[place]]):
                        return PyBytes_FromStringAndSize(<const char*>out.data, line), image
                put(&out, <const unsigned char*>b"\n", 1)
            else:
                put(&out, <const unsigned char*>(b"(" if image == first else b",("), 1 if image == first else 2)
                for place in range(written):
                    if place:
                        put(&out, <const unsigned char*>b",", 1)
                    if put_value(&out, &values[places[place]], kinds[places[place]]):
                        raise NotALiteral(image, places[place])
                put(&out, <const unsigned char*>b")", 1)
            start = cursor.end
            image += 1
        return PyBytes_FromStringAndSize(<const char*>out.data, out.size), image
    finally:
        free(values)
        free(places)
        free(out.data)
