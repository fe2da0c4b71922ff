"""Consecutive GTIDs, counted without parsing each of them.

A source's log usually has the numbers of one server in order, so that a GTID differs from the one before only in its
last digits. It is enough to count them and to add the range to the set once a commit.
"""

from libc.string cimport memcmp

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum:
    DIGITS = 18  # so that a number stays within 64 bits; larger ones are added one by one


cdef class GtidRange:
    """A first GTID, and the number of GTIDs of the same source (and tag) with consecutive numbers."""

    cpdef begin(self, str gtid):
        """Begin a range with this GTID; an empty range when it is None or not of the usual form."""
        cdef Py_ssize_t size
        cdef const char* text
        self.first = None
        if gtid is None:
            return
        text = PyUnicode_AsUTF8AndSize(gtid, &size)
        self.prefix = size
        while self.prefix and text[self.prefix - 1] != 58 and text[self.prefix - 1] != 45:  # `:`, or MariaDB's `-`
            self.prefix -= 1
        self.next = number(text + self.prefix, size - self.prefix) + 1
        if self.prefix and self.next > 1:
            self.first = gtid
            self.count = 1

    cpdef bint goes_on(self, str gtid) except -1:
        """Count a GTID if it is the next of the range; return whether it is."""
        cdef Py_ssize_t size
        cdef const char* text
        if self.first is None:
            return False
        text = PyUnicode_AsUTF8AndSize(gtid, &size)
        if size <= self.prefix or memcmp(text, PyUnicode_AsUTF8AndSize(self.first, NULL), self.prefix) != 0:
            return False
        if number(text + self.prefix, size - self.prefix) != self.next:
            return False
        self.next += 1
        self.count += 1
        return True


cdef long long number(const char* text, Py_ssize_t size) noexcept:
    """Decimal digits as a number; -1 for everything else, and for one that begins with 0."""
    cdef long long value = 0
    cdef Py_ssize_t i
    if not 0 < size <= DIGITS or text[0] == 48:
        return -1
    for i in range(size):
        if not 48 <= text[i] <= 57:
            return -1
        value = 10 * value + text[i] - 48
    return value
