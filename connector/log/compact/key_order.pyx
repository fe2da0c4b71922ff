"""Sorts keys roughly as a target's index does, so that neighbouring rows are changed one after the other.

Only speed depends on the order. It compares sixteen bytes of each key, numbers before texts: two numbers, or a number
and the beginning of a text, or the beginning of a text. Equal ones stay in the order in which they came.
"""

from cpython.bytes cimport PyBytes_AsString
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc, qsort

from connector.log.format.varint cimport read_varint

cdef enum:
    LONG = 2  # branches of the union, as Avro writes them
    STRING = 6
    BYTES = 8


cdef struct Rank:
    uint64_t first
    uint64_t second
    Py_ssize_t place


cdef int compared(const void* left, const void* right) noexcept nogil:
    cdef const Rank* a = <const Rank*>left
    cdef const Rank* b = <const Rank*>right
    if a.first != b.first:
        return -1 if a.first < b.first else 1
    if a.second != b.second:
        return -1 if a.second < b.second else 1
    return -1 if a.place < b.place else 1


cdef long long number(const unsigned char* key, Py_ssize_t size, Py_ssize_t* at) noexcept:
    """The long at an index, which it goes past; 0 where there is none: keys were checked before they got here."""
    cdef long long value = 0
    cdef int used = read_varint(key + at[0], size - at[0], &value)
    at[0] = at[0] + used if used > 0 else size
    return value


cdef uint64_t beginning(const unsigned char* key, Py_ssize_t size, Py_ssize_t* at) noexcept:
    """The next eight bytes, zeros after the last."""
    cdef uint64_t value = 0
    cdef int i
    for i in range(8):
        value <<= 8
        if at[0] < size:
            value |= key[at[0]]
            at[0] += 1
    return value


cdef void rank(Rank* found, const unsigned char* key, Py_ssize_t size) noexcept:
    """Fill in the bytes of a key that are compared."""
    cdef uint64_t* words[2]
    cdef Py_ssize_t at = 0
    cdef unsigned char branch
    cdef int i
    words[0] = &found.first
    words[1] = &found.second
    for i in range(2):
        branch = key[at] if at < size else 0
        at += 1
        if branch == LONG:
            # With the sign turned they are in order as unsigned numbers.
            words[i][0] = <uint64_t>number(key, size, &at) ^ <uint64_t>1 << 63
            continue
        if branch == STRING or branch == BYTES:
            number(key, size, &at)
        words[i][0] = beginning(key, size, &at)
        if i == 0:
            found.second = beginning(key, size, &at)
        break


cdef list in_order(dict found):
    """The values of a dictionary in the order of its keys, which are those of rows."""
    cdef list values = list(found.values())
    cdef Py_ssize_t count = len(values), place = 0, at, size
    cdef bint ascending = True
    cdef bytes key
    cdef const unsigned char* data
    cdef Rank* ranks = <Rank*>malloc((count or 1) * sizeof(Rank))
    if ranks is NULL:
        raise MemoryError
    try:
        for key in found:
            if place >= count:
                raise IndexError("more keys than values")
            data = <const unsigned char*>PyBytes_AsString(key)
            size = len(key)
            ranks[place].second = 0
            rank(&ranks[place], data, size)
            ranks[place].place = place
            ascending = ascending and (place == 0 or compared(&ranks[place - 1], &ranks[place]) < 0)
            place += 1
        if ascending:
            return values
        qsort(ranks, place, sizeof(Rank), compared)
        return [values[ranks[at].place] for at in range(place)]
    finally:
        free(ranks)
