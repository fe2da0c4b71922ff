"""Numbers as PostgreSQL's receive functions take them: int2recv, int4recv, int8recv, float4recv, float8recv, numeric_recv.

Each refuses what the type cannot hold exactly.
"""

from libc.stdint cimport int16_t, int32_t, uint32_t, uint64_t
from libc.string cimport memcpy

from connector.log.format.avro_values cimport DOUBLE_VALUE, LONG_VALUE, STRING_VALUE, Value
from connector.targets.postgres.copy_buffer cimport Buffer, put_field, put_number


cdef inline int put_integer(Buffer* out, Value* value, int width) except -1:
    cdef long long limit = (<long long>1) << (8 * width - 1) if width < 8 else 0
    if value.branch != LONG_VALUE:
        raise ValueError("kind", "is no 64-bit integer")
    if width < 8 and not -limit <= value.whole < limit:
        raise ValueError("range", f"{value.whole} does not fit {width} bytes")
    put_field(out, width)
    return put_number(out, <uint64_t>value.whole, width)


cdef inline int put_float(Buffer* out, Value* value, int width) except -1:
    cdef float narrow
    cdef uint32_t bits32
    cdef uint64_t bits64
    if value.branch != DOUBLE_VALUE:
        raise ValueError("kind", "is no number with a fraction")
    put_field(out, width)
    if width == 4:
        narrow = <float>value.real
        if <double>narrow != value.real:
            raise ValueError("precision", f"{value.real!r} is not a single precision number")
        memcpy(&bits32, &narrow, 4)
        return put_number(out, bits32, 4)
    memcpy(&bits64, &value.real, 8)
    return put_number(out, bits64, 8)


cdef enum:
    LONGEST = 200  # characters of a number: MySQL's longest decimal has 67


cdef inline int put_numeric(Buffer* out, Value* value) except -1:
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
        raise ValueError("kind", "is no number")
    if size > LONGEST:
        raise ValueError("digits", "has too many digits")
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
            raise ValueError("form", "is no decimal number")
        at += 1
    if whole + scale == 0:
        raise ValueError("form", "is no decimal number")
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


cdef inline Py_ssize_t decimal_text(long long number, unsigned char* out):
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
