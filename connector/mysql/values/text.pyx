"""Converts text of row images to Avro strings: UTF-8 is checked and copied, other sets use a table of characters.

An entry of a single-byte set's table has the character's UTF-8 in its lower three bytes, first byte lowest, and the
length in the fourth; length 0 marks an undefined byte. Tables of multi-byte sets: `multibyte`.
"""

from cpython.bytearray cimport PyByteArray_AsString
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from connector.log.format.varint cimport write_varint
from connector.mysql.memory cimport BYTES_TAG, STRING_TAG, Out, put_block, room
from connector.mysql.values.multibyte import DOUBLE, ENTRIES, FOUR, SINGLE
from connector.errors import ValueNotRepresentable

cdef Py_ssize_t PAIRS = SINGLE  # a table's first entry of two bytes
cdef Py_ssize_t LONGER = SINGLE + DOUBLE  # of three or four bytes
cdef Py_ssize_t BASIC = FOUR
cdef enum:
    SUPPLEMENTARY = 189000  # gb18030's four-byte character number of U+10000; later ones follow
    PLANES = 0x100000
    SHOWN = 8  # bytes in an error message


MEANINGLESS = "a text is not valid in its character set"
HINT = (
    "correct the row on the source, or publish such values of this column as bytes: source.keep_invalid_text"
)
FILE_HINT = "--keep-invalid-text SCHEMA.TABLE.COLUMN prints such values as bytes"


def meaningless(
    str what not None, bytes text not None, Py_ssize_t at, str hint not None="", str file_hint not None=""
):
    """The error for a text that is invalid at an offset."""
    return ValueNotRepresentable(what, hint=hint, bytes=text[at : at + SHOWN].hex(), at=at).with_file_hint(file_hint)


cdef int put_invalid(Out* out, const uint8_t* text, Py_ssize_t size, Py_ssize_t at, bint keep) except -1 nogil:
    """Writes text that is invalid at an offset as bytes, or raises."""
    if keep:
        return put_block(out, BYTES_TAG, text, size)
    with gil:
        raise meaningless(MEANINGLESS, text[:size], at, HINT, FILE_HINT)


cdef inline Py_ssize_t ascii_prefix(const uint8_t* p, Py_ssize_t size) noexcept nogil:
    """The number of leading ASCII bytes, compared eight at a time."""
    cdef Py_ssize_t i = 0
    cdef uint64_t word
    while i + 8 <= size:
        memcpy(&word, p + i, 8)
        if word & <uint64_t>0x8080808080808080:
            break
        i += 8
    while i < size and p[i] < 0x80:
        i += 1
    return i


cdef inline bint tail(uint8_t byte) noexcept nogil:
    return byte & 0xC0 == 0x80


cdef bint is_utf8(const uint8_t* p, Py_ssize_t size) noexcept nogil:
    """True if the bytes are well-formed UTF-8 (Unicode, table 3-7: no overlong forms, no surrogates)."""
    cdef Py_ssize_t i = 0
    cdef uint8_t first, second
    while True:
        i += ascii_prefix(p + i, size - i)
        if i == size:
            return True
        first = p[i]
        if first < 0xC2 or first > 0xF4 or size - i < 2 or not tail(p[i + 1]):
            return False
        if first < 0xE0:
            i += 2
            continue
        second = p[i + 1]
        if size - i < 3 or not tail(p[i + 2]):
            return False
        if first < 0xF0:
            if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F):
                return False
            i += 3
            continue
        if size - i < 4 or not tail(p[i + 3]):
            return False
        if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
            return False
        i += 4


cdef Py_ssize_t where_not_utf8(const uint8_t* text, Py_ssize_t size) except -1 nogil:
    """The offset of the first invalid byte, by Python's decoder."""
    with gil:
        try:
            text[:size].decode()
        except UnicodeDecodeError as error:
            return error.start
    return 0


cdef int put_utf8(Out* out, const uint8_t* text, Py_ssize_t size, bint keep) except -1 nogil:
    if not is_utf8(text, size):
        return put_invalid(out, text, size, 0 if keep else where_not_utf8(text, size), keep)
    return put_block(out, STRING_TAG, text, size)


cdef int put_mapped(
    Out* out, const uint8_t* text, Py_ssize_t size, const uint32_t* table, bint keep
) except -1 nogil:
    """Text of a single-byte set. Two passes, because Avro's length in UTF-8 comes first."""
    cdef Py_ssize_t plain = ascii_prefix(text, size)
    if plain == size and table[0x5C] == 0x0100005C:  # all sets but swe7 have ASCII
        return put_block(out, STRING_TAG, text, size)
    cdef Py_ssize_t length = 0
    cdef Py_ssize_t i
    cdef int k
    cdef uint32_t entry
    for i in range(size):
        entry = table[text[i]] >> 24
        if entry == 0:
            return put_invalid(out, text, size, i, keep)
        length += entry
    cdef uint8_t* p = room(out, length + 11)
    cdef uint8_t* start = p
    p[0] = STRING_TAG
    p += 1 + write_varint(p + 1, length)
    for i in range(size):
        entry = table[text[i]]
        for k in range(<int>(entry >> 24)):
            p[k] = <uint8_t>(entry >> (8 * k))
        p += entry >> 24
    out.size += p - start
    return 0


cdef uint32_t four(const uint8_t* p, Py_ssize_t left, const uint16_t* codes) noexcept nogil:
    """A character of four bytes of gb18030: they are numbered by digits of 126, 10, 126 and 10 values."""
    cdef uint32_t index
    if left < 4 or p[0] < 0x81 or p[0] == 0xFF or p[2] < 0x81 or p[2] == 0xFF or p[3] < 0x30 or p[3] > 0x39:
        return 0
    index = ((p[0] - 0x81) * 10 + p[1] - 0x30) * 1260 + (p[2] - 0x81) * 10 + p[3] - 0x30
    if index < BASIC:
        return codes[LONGER + index]
    index -= SUPPLEMENTARY  # wraps around below SUPPLEMENTARY
    return index + 0x10000 if index < PLANES else 0


cdef inline uint32_t character(
    const uint8_t* p, Py_ssize_t left, const uint16_t* codes, int longest, Py_ssize_t* width
) noexcept nogil:
    """The code point and the bytes of the character at `p`, whose first byte is not ASCII; 0: undefined."""
    cdef Py_ssize_t lower = p[0] & 0x7F
    width[0] = 1
    if codes[lower] or left < 2:
        return codes[lower]
    if longest == 3 and p[0] == 0x8F:
        width[0] = 3
        return codes[LONGER + (p[1] & 0x7F) * 256 + p[2]] if left > 2 and p[1] & 0x80 else 0
    if longest == 4 and p[1] >= 0x30 and p[1] <= 0x39:
        width[0] = 4
        return four(p, left, codes)
    width[0] = 2
    return codes[PAIRS + lower * 256 + p[1]]


cdef Py_ssize_t utf8_size(
    const uint8_t* text, Py_ssize_t size, const uint16_t* codes, int longest, Py_ssize_t* meant
) noexcept nogil:
    """The text's bytes in UTF-8, up to the first undefined character, at which `meant` bytes are read."""
    cdef Py_ssize_t i = 0
    cdef Py_ssize_t length = 0
    cdef Py_ssize_t width
    cdef uint32_t code
    while i < size:
        if text[i] < 0x80:
            width = ascii_prefix(text + i, size - i)
            length += width
        else:
            code = character(text + i, size - i, codes, longest, &width)
            if code == 0:
                break
            length += 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        i += width
    meant[0] = i
    return length


cdef void to_utf8(
    uint8_t* p, const uint8_t* text, Py_ssize_t size, const uint16_t* codes, int longest
) noexcept nogil:
    """Writes the text to `p`, where the bytes that `utf8_size` counted are granted."""
    cdef Py_ssize_t i = 0
    cdef Py_ssize_t width
    cdef uint32_t code
    while i < size:
        if text[i] < 0x80:
            p[0] = text[i]
            p += 1
            i += 1
            continue
        code = character(text + i, size - i, codes, longest, &width)
        i += width
        if code < 0x80:
            p[0] = <uint8_t>code
            p += 1
        elif code < 0x800:
            p[0] = <uint8_t>(0xC0 | code >> 6)
            p[1] = <uint8_t>(0x80 | code & 0x3F)
            p += 2
        elif code < 0x10000:
            p[0] = <uint8_t>(0xE0 | code >> 12)
            p[1] = <uint8_t>(0x80 | code >> 6 & 0x3F)
            p[2] = <uint8_t>(0x80 | code & 0x3F)
            p += 3
        else:
            p[0] = <uint8_t>(0xF0 | code >> 18)
            p[1] = <uint8_t>(0x80 | code >> 12 & 0x3F)
            p[2] = <uint8_t>(0x80 | code >> 6 & 0x3F)
            p[3] = <uint8_t>(0x80 | code & 0x3F)
            p += 4


cdef int put_multibyte(
    Out* out, const uint8_t* text, Py_ssize_t size, const uint16_t* codes, int longest, bint keep
) except -1 nogil:
    """Text of a multi-byte set, in two passes as `put_mapped`."""
    cdef Py_ssize_t meant
    cdef Py_ssize_t length = utf8_size(text, size, codes, longest, &meant)
    if meant < size:
        return put_invalid(out, text, size, meant, keep)
    cdef uint8_t* p = room(out, length + 11)
    p[0] = STRING_TAG
    cdef int n = 1 + write_varint(p + 1, length)
    to_utf8(p + n, text, size, codes, longest)
    out.size += n + length
    return 0


def check_codes(bytes codes not None, int longest):
    """Checks the length of a table of a set whose characters have up to `longest` bytes."""
    if len(codes) != 2 * ENTRIES[longest]:
        raise ValueError("the table of a character set has another length")


def multibyte_text(bytes text not None, bytes codes not None, int longest):
    """Decodes text of a multi-byte set.

    Raises:
        ValueNotRepresentable: the text is not valid in the set.
    """
    check_codes(codes, longest)
    cdef const uint16_t* table = <const uint16_t*><const uint8_t*>codes
    cdef const uint8_t* data = text
    cdef Py_ssize_t meant
    cdef bytearray made = bytearray(utf8_size(data, len(text), table, longest, &meant))
    if meant < len(text):
        raise meaningless(MEANINGLESS, text, meant)
    to_utf8(<uint8_t*>PyByteArray_AsString(made), data, len(text), table, longest)
    return made.decode()
