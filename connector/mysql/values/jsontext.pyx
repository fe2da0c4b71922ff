# cython: cdivision=True
"""Prints MySQL's binary JSON as MySQL does, byte for byte.

The format is described in MySQL's `sql-common/json_binary.h`: a type byte, then the value. A container has the number
of its members, its size in bytes, an entry per key (offset, length) and one per value (type, and the value if it
is small, else its offset). Numbers have 2 bytes in small containers and 4 in large ones.

Entries may share an offset, so the text of a small document could have gigabytes: the depth is limited, and the text to
the longest that a regular document of this size can have.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from connector.mysql.memory cimport (
    Cursor,
    Out,
    damaged,
    little,
    put_byte,
    put_digits,
    put_raw,
    release,
    room,
    take,
)
from connector.mysql.values.text cimport is_utf8
from connector.mysql.values.values cimport clock_text, date_text, decimal_size, decimal_text, fraction_text

import binascii

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char format, int precision, int flags, int* type) except NULL
    void PyMem_Free(void* memory)

cdef enum Type:
    SMALL_OBJECT = 0x00
    LARGE_OBJECT = 0x01
    SMALL_ARRAY = 0x02
    LARGE_ARRAY = 0x03
    LITERAL = 0x04
    INT16 = 0x05
    UINT16 = 0x06
    INT32 = 0x07
    UINT32 = 0x08
    INT64 = 0x09
    UINT64 = 0x0A
    DOUBLE = 0x0B
    STRING = 0x0C
    OPAQUE = 0x0F

cdef enum Field:  # types of opaque values that are printed as such
    TIMESTAMP = 7
    DATE = 10
    TIME = 11
    DATETIME = 12
    DECIMAL = 246

cdef enum:
    MAX_DEPTH = 100  # MySQL's limit
    MOST_GROUPS = 9  # of digits in a decimal
    MAX_GROWTH = 16  # a control character becomes six, a number of 3 bytes at most eight and its separator

cdef const char* HEX = b"0123456789abcdef"


cdef int json_text(const uint8_t* document, Py_ssize_t size, Out* text) except -1 nogil:
    """Writes a document's text. An empty document, which `INSERT IGNORE` makes of NULL, is JSON's null."""
    cdef Cursor all
    cdef Py_ssize_t limit = text.size + MAX_GROWTH * size + 256
    if size == 0:
        return put_raw(text, b"null", 4)
    all.data = document + 1
    all.end = document + size
    return value(document[0], &all, text, limit, 0)


def text_of(bytes document not None):
    """The text of a document: a type byte and the value.

    Raises:
        CorruptBinlog: the bytes contradict the format.
    """
    cdef Out text
    memset(&text, 0, sizeof(Out))
    try:
        json_text(<const uint8_t*>document, len(document), &text)
        return text.data[: text.size]
    finally:
        release(&text)


cdef int value(uint8_t type, Cursor* at, Out* text, Py_ssize_t limit, int depth) except -1 nogil:
    """Writes a value; `at` ends where the enclosing container does."""
    if text.size > limit:
        damaged(b"the text of a JSON document is longer than its size allows")
    if type == SMALL_OBJECT or type == LARGE_OBJECT:
        return container(at, text, limit, depth, True, 4 if type == LARGE_OBJECT else 2)
    if type == SMALL_ARRAY or type == LARGE_ARRAY:
        return container(at, text, limit, depth, False, 4 if type == LARGE_ARRAY else 2)
    if type == LITERAL:
        return literal(take(at, 1)[0], text)
    if type == INT16:
        return signed(<int16_t>little(take(at, 2), 2), text)
    if type == UINT16:
        return unsigned_(little(take(at, 2), 2), text)
    if type == INT32:
        return signed(<int32_t>little(take(at, 4), 4), text)
    if type == UINT32:
        return unsigned_(little(take(at, 4), 4), text)
    if type == INT64:
        return signed(<int64_t>little(take(at, 8), 8), text)
    if type == UINT64:
        return unsigned_(little(take(at, 8), 8), text)
    if type == DOUBLE:
        return double_(take(at, 8), text)
    if type == STRING:
        return string(at, text)
    if type == OPAQUE:
        return opaque(at, text)
    return damaged(b"a JSON value has an unknown type")


cdef int container(Cursor* at, Out* text, Py_ssize_t limit, int depth, bint keyed, int wide) except -1 nogil:
    cdef Cursor inside, member, name
    cdef const uint8_t* base = at.data
    cdef uint64_t count = little(take(at, wide), wide)
    cdef uint64_t size = little(take(at, wide), wide)
    cdef uint64_t i, offset
    cdef uint8_t type
    if depth >= MAX_DEPTH:
        damaged(b"a JSON document is deeper than 100 levels")
    at.data = base
    inside.data = take(at, <Py_ssize_t>size)
    inside.end = inside.data + size
    cdef Cursor keys = inside
    take(&keys, 2 * wide)
    cdef Cursor values = keys
    if keyed:
        take(&values, <Py_ssize_t>count * (wide + 2))
    put_byte(text, 123 if keyed else 91)
    for i in range(count):
        if i:
            put_raw(text, b", ", 2)
        if keyed:
            offset = little(take(&keys, wide), wide)
            name = inside
            take(&name, <Py_ssize_t>offset)
            size = little(take(&keys, 2), 2)
            quoted(take(&name, <Py_ssize_t>size), <Py_ssize_t>size, text)
            put_raw(text, b": ", 2)
        type = take(&values, 1)[0]
        member = values
        offset = little(take(&values, wide), wide)
        if not inlined(type, wide):
            member = inside
            take(&member, <Py_ssize_t>offset)
        value(type, &member, text, limit, depth + 1)
    return put_byte(text, 125 if keyed else 93)


cdef inline bint inlined(uint8_t type, int wide) noexcept nogil:
    """True if the entry holds the value itself."""
    return type == LITERAL or type == INT16 or type == UINT16 or (wide == 4 and (type == INT32 or type == UINT32))


cdef int literal(uint8_t which, Out* text) except -1 nogil:
    if which == 0:
        return put_raw(text, b"null", 4)
    if which == 1:
        return put_raw(text, b"true", 4)
    if which == 2:
        return put_raw(text, b"false", 5)
    return damaged(b"a JSON literal is not null, true or false")


cdef int unsigned_(uint64_t number, Out* text) except -1 nogil:
    cdef int width = 1
    cdef uint64_t rest = number // 10
    while rest:
        rest //= 10
        width += 1
    put_digits(room(text, width), number, width)
    text.size += width
    return 0


cdef int signed(int64_t number, Out* text) except -1 nogil:
    if number >= 0:
        return unsigned_(<uint64_t>number, text)
    put_byte(text, 45)
    return unsigned_(<uint64_t>0 - <uint64_t>number, text)


cdef int string(Cursor* at, Out* text) except -1 nogil:
    cdef Py_ssize_t size = length(at)
    return quoted(take(at, size), size, text)


cdef Py_ssize_t length(Cursor* at) except -1 nogil:
    """Reads a length: 7 bits a byte, least significant first, at most five bytes; the top bit: another byte follows."""
    cdef uint64_t size = 0
    cdef uint8_t byte
    cdef int i
    for i in range(5):
        byte = take(at, 1)[0]
        size |= <uint64_t>(byte & 0x7F) << (7 * i)
        if byte < 0x80:
            if size >> 32:
                break
            return <Py_ssize_t>size
    return damaged(b"a JSON length is longer than 32 bits")


cdef int quoted(const uint8_t* chars, Py_ssize_t size, Out* text) except -1 nogil:
    """Writes a string in quotes, escaped as by MySQL's `double_quote`."""
    cdef Py_ssize_t i
    cdef Py_ssize_t done = 0
    cdef uint8_t char, short
    if not is_utf8(chars, size):
        damaged(b"a JSON string is not UTF-8")
    put_byte(text, 34)
    for i in range(size):
        char = chars[i]
        if char >= 32 and char != 34 and char != 92:
            continue
        put_raw(text, chars + done, i - done)
        done = i + 1
        put_byte(text, 92)
        short = escape(char)
        if short:
            put_byte(text, short)
        else:
            put_raw(text, b"u00", 3)
            put_byte(text, HEX[char >> 4])
            put_byte(text, HEX[char & 15])
    put_raw(text, chars + done, size - done)
    return put_byte(text, 34)


cdef inline uint8_t escape(uint8_t char) noexcept nogil:
    """The letter of the short escape; 0: there is none."""
    if char == 34 or char == 92:
        return char
    if char == 8:
        return 98  # b
    if char == 9:
        return 116  # t
    if char == 10:
        return 110  # n
    if char == 12:
        return 102  # f
    if char == 13:
        return 114  # r
    return 0


cdef int double_(const uint8_t* p, Out* text) except -1 nogil:
    """Writes the shortest digits that read back the same, with `.0` after an integer.

    As MySQL's `my_gcvt`: with an exponent below 1e-15, and from 1e15 on if no digit follows the point.
    """
    cdef uint64_t bits = little(p, 8)
    cdef double number
    memcpy(&number, &bits, 8)
    if number != number or number - number != 0:
        damaged(b"a JSON number is not finite")
    with gil:
        shown = gcvt(number)
        put_raw(text, <const char*>shown, len(shown))
    return 0


cdef bytes gcvt(double number):
    cdef char* repr_ = PyOS_double_to_string(number, b'r', 0, 0, NULL)
    try:
        shown = (<bytes>repr_).decode()
    finally:
        PyMem_Free(repr_)
    sign = "-" if shown.startswith("-") else ""
    mantissa, _, exponent = shown.lstrip("-").partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + part) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return (sign + "0.0").encode()
    if point < -14 or (point > 15 and len(digits) <= point):
        tail_ = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail_}e{point - 1}".encode()
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}".encode()
    if len(digits) <= point:
        return f"{sign}{digits}{'0' * (point - len(digits))}.0".encode()
    return f"{sign}{digits[:point]}.{digits[point:]}".encode()


cdef int opaque(Cursor* at, Out* text) except -1 nogil:
    """Writes an SQL value that JSON has no type for: a field type, a length, its bytes."""
    cdef uint8_t type = take(at, 1)[0]
    cdef Py_ssize_t size = length(at)
    cdef Cursor body
    body.data = take(at, size)
    body.end = body.data + size
    if type == DECIMAL:
        return decimal(&body, text)
    if type == DATE or type == DATETIME or type == TIMESTAMP:
        return datetime(little(take(&body, 8), 8), type, text)
    if type == TIME:
        return time(<int64_t>little(take(&body, 8), 8), text)
    with gil:
        shown = binascii.b2a_base64(body.data[:size], newline=False)
        lines = b"\\n".join(shown[i : i + 76] for i in range(0, len(shown), 76))
        named = b'"base64:type%d:%s"' % (type, lines)
        put_raw(text, <const char*>named, len(named))
    return 0


cdef int decimal(Cursor* body, Out* text) except -1 nogil:
    """Writes a decimal: precision and scale, a byte each, then the image as in a row. A computed value can have more
    digits than a column: nine groups of nine, none with digits of both sides of the point."""
    cdef const uint8_t* sizes = take(body, 2)
    cdef int precision = sizes[0]
    cdef int scale = sizes[1]
    if precision < 1 or scale > precision or (precision - scale + 8) // 9 + (scale + 8) // 9 > MOST_GROUPS:
        damaged(b"a decimal in JSON has an impossible precision or scale")
    text.size += decimal_text(take(body, decimal_size(precision, scale)), precision, scale, room(text, 128))
    return 0


cdef int datetime(uint64_t bits, uint8_t type, Out* text) except -1 nogil:
    """8 bytes: 17 bits year * 13 + month, 5 day, 5 hour, 6 minute, 6 second, 24 microsecond. Always six digits."""
    cdef uint8_t[40] shown
    cdef uint8_t* p = shown
    cdef uint64_t clock = bits >> 24
    cdef uint64_t months = clock >> 22
    if months >= 130000 or (bits & 0xFFFFFF) > 999999:
        damaged(b"a date in JSON has a part out of its range")
    p[0] = 34
    p = date_text(p + 1, months // 13, months % 13, (clock >> 17) & 31)
    if type != DATE:
        p[0] = 32
        p = clock_text(p + 1, (clock >> 12) & 31, (clock >> 6) & 63, clock & 63)
        p = fraction_text(p, bits & 0xFFFFFF, 6)
    p[0] = 34
    return put_raw(text, shown, p + 1 - shown)


cdef int time(int64_t bits, Out* text) except -1 nogil:
    """8 bytes, negative below zero: 10 bits hour, 6 minute, 6 second, 24 microsecond. Always six digits."""
    cdef uint8_t[40] shown
    cdef uint8_t* p = shown
    cdef uint64_t size = <uint64_t>bits
    p[0] = 34
    p += 1
    if bits < 0:
        p[0] = 45
        p += 1
        size = <uint64_t>0 - <uint64_t>bits
    if (size >> 36) > 838 or (size & 0xFFFFFF) > 999999:
        damaged(b"a time in JSON has a part out of its range")
    p = clock_text(p, size >> 36, (size >> 30) & 63, (size >> 24) & 63)
    p = fraction_text(p, size & 0xFFFFFF, 6)
    p[0] = 34
    return put_raw(text, shown, p + 1 - shown)
