"""Row images as PostgreSQL's binary COPY format, straight from their Avro bytes.

The format is PostgreSQL's manual, "COPY", "Binary Format": per row a count of fields, per field a length (-1: NULL)
and bytes as the type's receive function takes them; all numbers big-endian. The types' forms are those of the
receive functions in its source (src/backend/utils/adt).

One function per kind of value. Each refuses what PostgreSQL's type cannot hold exactly.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcpy

from cpython.bytes cimport PyBytes_FromStringAndSize

from connector.write.avro cimport (
    BYTES_VALUE, DOUBLE_VALUE, LONG_VALUE, NULL_VALUE, STRING_VALUE, Cursor, Value, read_value,
)

cpdef enum Kind:
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


class Unfit(ValueError):
    """A value that its column cannot hold.

    Args:
        image: which image, from 0.
        column: which of its values.
        reason: why.
    """

    def __init__(self, image, column, reason):
        super().__init__(reason)
        self.image = image
        self.column = column
        self.reason = reason


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


cdef int put_number(Buffer* out, uint64_t number, int width) except -1:
    """A big-endian integer of some bytes."""
    cdef int left = width
    reserve(out, width)
    while left > 0:
        left -= 1
        out.data[out.size + left] = <unsigned char>(number & 0xFF)
        number >>= 8
    out.size += width
    return 0


cdef int put_field(Buffer* out, int32_t size) except -1:
    return put_number(out, <uint32_t>size, 4)


# --- numbers ---

cdef int put_integer(Buffer* out, Value* value, int width) except -1:
    cdef long long limit = (<long long>1) << (8 * width - 1) if width < 8 else 0
    if value.branch != LONG_VALUE:
        raise ValueError("is no 64-bit integer")
    if width < 8 and not -limit <= value.whole < limit:
        raise ValueError(f"{value.whole} does not fit {width} bytes")
    put_field(out, width)
    return put_number(out, <uint64_t>value.whole, width)


cdef int put_float(Buffer* out, Value* value, int width) except -1:
    cdef float narrow
    cdef uint32_t bits32
    cdef uint64_t bits64
    if value.branch != DOUBLE_VALUE:
        raise ValueError("is no number with a fraction")
    put_field(out, width)
    if width == 4:
        narrow = <float>value.real
        if <double>narrow != value.real:
            raise ValueError(f"{value.real!r} is not a single precision number")
        memcpy(&bits32, &narrow, 4)
        return put_number(out, bits32, 4)
    memcpy(&bits64, &value.real, 8)
    return put_number(out, bits64, 8)


cdef enum:
    LONGEST = 200  # characters of a number: MySQL's longest decimal has 67


cdef int put_numeric(Buffer* out, Value* value) except -1:
    """ndigits, weight, sign, display scale, and digits of base 10000: numeric_recv."""
    cdef const unsigned char* text = value.text
    cdef Py_ssize_t size = value.size, at = 0, whole = 0, scale = 0
    cdef unsigned char digits[208]  # decimal digits, the point left out, in whole groups of four
    cdef int16_t groups[52]
    cdef unsigned char written[24]
    cdef Py_ssize_t lead, count = 0, first = 0, last, index
    cdef bint negative = False, point = False
    if value.branch == LONG_VALUE:
        size = decimal_text(value.whole, written)
        text = written
    elif value.branch != STRING_VALUE:
        raise ValueError("is no number")
    if size > LONGEST:
        raise ValueError("has too many digits")
    if at < size and text[at] == c"-":
        negative = True
        at += 1
    index = at
    while index < size and text[index] != c".":
        index += 1
    whole = index - at
    lead = (4 - whole % 4) % 4
    for index in range(lead):
        digits[count] = 0
        count += 1
    while at < size:
        if text[at] == c"." and not point:
            point = True
        elif c"0" <= text[at] <= c"9":
            digits[count] = text[at] - c"0"
            count += 1
            scale += point
        else:
            raise ValueError("is no decimal number")
        at += 1
    if whole + scale == 0:
        raise ValueError("is no decimal number")
    while count % 4:
        digits[count] = 0
        count += 1
    last = count // 4
    for index in range(last):
        groups[index] = <int16_t>(
            digits[4 * index] * 1000 + digits[4 * index + 1] * 100 + digits[4 * index + 2] * 10 + digits[4 * index + 3]
        )
    while first < last and groups[first] == 0:
        first += 1
    while last > first and groups[last - 1] == 0:
        last -= 1
    put_field(out, <int32_t>(8 + 2 * (last - first)))
    put_number(out, <uint64_t>(last - first), 2)
    # The weight is that of the first digit, in powers of 10000.
    put_number(out, <uint64_t>((whole + lead) // 4 - 1 - first if last > first else 0), 2)
    put_number(out, 0x4000 if negative and last > first else 0, 2)
    put_number(out, <uint64_t>scale, 2)
    for index in range(first, last):
        put_number(out, <uint64_t>groups[index], 2)
    return 0


cdef Py_ssize_t decimal_text(long long number, unsigned char* out):
    """A number's digits, into at least 20 bytes; how many there are."""
    cdef unsigned char reverse[24]
    cdef Py_ssize_t count = 0, size = 0
    cdef uint64_t left = <uint64_t>number if number >= 0 else 0 - <uint64_t>number
    while left or not count:
        reverse[count] = c"0" + <unsigned char>(left % 10)
        left //= 10
        count += 1
    if number < 0:
        out[0] = c"-"
        size = 1
    while count:
        count -= 1
        out[size] = reverse[count]
        size += 1
    return size


# --- time ---

cdef Py_ssize_t digits_at(const unsigned char* text, Py_ssize_t size, Py_ssize_t at, Py_ssize_t count) except -1:
    """The number that `count` digits say."""
    cdef Py_ssize_t number = 0, index
    if at + count > size:
        raise ValueError("is shorter than its form")
    for index in range(at, at + count):
        if not c"0" <= text[index] <= c"9":
            raise ValueError("has a letter where a digit stands")
        number = number * 10 + (text[index] - c"0")
    return number


cdef int expect(const unsigned char* text, Py_ssize_t size, Py_ssize_t at, unsigned char sign) except -1:
    if at >= size or text[at] != sign:
        raise ValueError("has another form")
    return 0


cdef int64_t days_since_2000(Value* value) except? -1:
    """Of YYYY-MM-DD at the text's begin, in the Gregorian calendar of all times."""
    cdef Py_ssize_t year = digits_at(value.text, value.size, 0, 4)
    cdef Py_ssize_t month = digits_at(value.text, value.size, 5, 2)
    cdef Py_ssize_t day = digits_at(value.text, value.size, 8, 2)
    cdef Py_ssize_t length
    expect(value.text, value.size, 4, c"-")
    expect(value.text, value.size, 7, c"-")
    if year < 1 or not 1 <= month <= 12 or day < 1:
        raise ValueError("is a date with a zero in it, which PostgreSQL has not")
    length = 31 - (month - 1) % 7 % 2
    if month == 2:
        length = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if day > length:
        raise ValueError("is no day of the calendar")
    # Years begin in March here, so that February's length is the year's end.
    if month < 3:
        year -= 1
        month += 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 730426


cdef int64_t microseconds(Value* value, Py_ssize_t at) except? -1:
    """Of :MM:SS[.ffffff] from `at` to the text's end."""
    cdef Py_ssize_t minute, second, places
    cdef int64_t fraction = 0
    expect(value.text, value.size, at, c":")
    minute = digits_at(value.text, value.size, at + 1, 2)
    expect(value.text, value.size, at + 3, c":")
    second = digits_at(value.text, value.size, at + 4, 2)
    if minute > 59 or second > 59:
        raise ValueError("is no time of the clock")
    at += 6
    if at < value.size:
        expect(value.text, value.size, at, c".")
        places = value.size - at - 1
        if not 1 <= places <= 6:
            raise ValueError("has another form")
        fraction = digits_at(value.text, value.size, at + 1, places)
        while places < 6:
            fraction *= 10
            places += 1
    return (minute * 60 + second) * <int64_t>1000000 + fraction


cdef int put_date(Buffer* out, Value* value) except -1:
    if value.size != 10:
        raise ValueError("is no date")
    put_field(out, 4)
    return put_number(out, <uint64_t>days_since_2000(value), 4)


cdef int put_timestamp(Buffer* out, Value* value) except -1:
    cdef int64_t days = days_since_2000(value)
    cdef Py_ssize_t hour = digits_at(value.text, value.size, 11, 2)
    expect(value.text, value.size, 10, c" ")
    if hour > 23:
        raise ValueError("is no time of the clock")
    put_field(out, 8)
    return put_number(
        out, <uint64_t>((days * 24 + hour) * <int64_t>3600000000 + microseconds(value, 13)), 8
    )


cdef int put_interval(Buffer* out, Value* value) except -1:
    """Microseconds, days, months; hours are never made days of."""
    cdef bint negative = value.size > 0 and value.text[0] == c"-"
    cdef Py_ssize_t start = negative, colon = start
    cdef int64_t micros
    while colon < value.size and value.text[colon] != c":":
        colon += 1
    if not 2 <= colon - start <= 3:
        raise ValueError("is no time")
    micros = digits_at(value.text, value.size, start, colon - start) * <int64_t>3600000000
    micros += microseconds(value, colon)
    put_field(out, 16)
    put_number(out, <uint64_t>(-micros if negative else micros), 8)
    return put_number(out, 0, 8)


# --- text and bytes ---

cdef int put_text(Buffer* out, Value* value) except -1:
    if value.branch != STRING_VALUE:
        raise ValueError("is no text")
    if value.size and memchr(value.text, 0, value.size) != NULL:
        raise ValueError("has U+0000 in it, which PostgreSQL's text has not")
    return put_sized(out, value)


cdef int put_bytes(Buffer* out, Value* value) except -1:
    if value.branch != BYTES_VALUE:
        raise ValueError("is no bytes")
    return put_sized(out, value)


cdef int put_sized(Buffer* out, Value* value) except -1:
    if value.size > 0x3FFFFFFF:
        raise ValueError("is larger than 1 GiB")
    put_field(out, <int32_t>value.size)
    return put(out, value.text, value.size)


cdef int put_bits(Buffer* out, Value* value, int bits) except -1:
    """MySQL fills the last byte, PostgreSQL the first: shifted to the left."""
    cdef Py_ssize_t size = (bits + 7) // 8, index
    cdef int shift = <int>(8 * size - bits)
    cdef unsigned int pair
    if value.branch != BYTES_VALUE or value.size != size or (shift and value.text[0] >> (8 - shift)):
        raise ValueError(f"is no bit string of {bits} bits")
    put_field(out, <int32_t>(4 + size))
    put_number(out, <uint64_t>bits, 4)
    for index in range(size):
        pair = <unsigned int>value.text[index] << 8
        if index + 1 < size:
            pair |= value.text[index + 1]
        put_number(out, (pair << shift) >> 8, 1)
    return 0


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
        raise ValueError("is no text")
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
    const unsigned char[::1] wanted,
    int operation,
    Py_ssize_t limit,
):
    """Rows of COPY: the operation's letter as a field of its own, then a field per value.

    Args:
        data, ends: of `connector.thl.net.Images`.
        first: the image to begin with.
        kinds: a `Kind` per value.
        bits: per value, how many bits a BIT has.
        wanted: per value, whether it is sent; else NULL is.
        operation: the letter.
        limit: bytes after which no further image is begun.

    Returns:
        The bytes, and the image to go on with.

    Raises:
        Unfit: a value that its column cannot hold.
        ValueError: the bytes are not a value per kind and image.
    """
    cdef Py_ssize_t columns = kinds.shape[0], image = first, column = 0
    cdef Py_ssize_t start
    cdef Cursor cursor
    cdef Value value
    cdef Buffer out
    if bits.shape[0] != columns or wanted.shape[0] != columns:
        raise ValueError("kinds, bits and wanted are of one length")
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
            put_number(&out, <uint64_t>(columns + 1), 2)
            put_field(&out, 1)
            put_number(&out, <uint64_t>operation, 1)
            for column in range(columns):
                read_value(&cursor, &value)
                if not wanted[column]:
                    put_field(&out, -1)
                    continue
                try:
                    put_value(&out, &value, kinds[column], bits[column])
                except ValueError as error:
                    raise Unfit(image, column, str(error)) from None
            if cursor.at != cursor.end:
                raise ValueError("an image has more values than columns")
            start = cursor.end
            image += 1
        return PyBytes_FromStringAndSize(<const char*>out.data, out.size), image
    finally:
        free(out.data)
