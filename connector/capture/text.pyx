"""Text of row images into Avro strings: UTF-8 checked and copied, single-byte sets by a table of their bytes.

An entry of a table is a character's UTF-8 in its lower three bytes, first byte lowest, and its length above them;
length 0 is a byte that means nothing in the set.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from connector.capture.memory cimport STRING_TAG, Out, put_block, room, zigzag
from connector.errors import ValueNotRepresentable


cdef int meaningless(const char* what) except -1 nogil:
    with gil:
        raise ValueNotRepresentable(
            what.decode(), hint="the source holds it so: find the row there and correct it"
        )


cdef inline Py_ssize_t ascii_prefix(const uint8_t* p, Py_ssize_t size) noexcept nogil:
    """How many leading bytes are below 0x80, eight at a time."""
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
    """Whether the bytes are well-formed UTF-8 (Unicode, table 3-7: no overlong forms, no surrogates)."""
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


cdef int put_utf8(Out* out, const uint8_t* text, Py_ssize_t size) except -1 nogil:
    if not is_utf8(text, size):
        meaningless(b"a text holds bytes that are not UTF-8")
    return put_block(out, STRING_TAG, text, size)


cdef int put_mapped(Out* out, const uint8_t* text, Py_ssize_t size, const uint32_t* table) except -1 nogil:
    """Two passes: Avro wants the length in UTF-8 first."""
    cdef Py_ssize_t plain = ascii_prefix(text, size)
    if plain == size and table[0x5C] == 0x0100005C:  # every set but swe7 keeps ASCII
        return put_block(out, STRING_TAG, text, size)
    cdef Py_ssize_t length = 0
    cdef Py_ssize_t i
    cdef int k
    cdef uint32_t entry
    for i in range(size):
        entry = table[text[i]] >> 24
        if entry == 0:
            meaningless(b"a text holds a byte that means nothing in its character set")
        length += entry
    cdef uint8_t* p = room(out, length + 11)
    cdef uint8_t* start = p
    p[0] = STRING_TAG
    p += 1 + zigzag(p + 1, length)
    for i in range(size):
        entry = table[text[i]]
        for k in range(<int>(entry >> 24)):
            p[k] = <uint8_t>(entry >> (8 * k))
        p += entry >> 24
    out.size += p - start
    return 0
