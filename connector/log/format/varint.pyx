"""Avro's numbers for Python; `varint.pxd` has them for compiled code."""

from cpython.bytes cimport PyBytes_FromStringAndSize

from connector.log.rules import BrokenRule, Rule


cdef int refuse(int failure) except -1:
    """Raise what `read_varint` returned instead of a size."""
    if failure == TOO_LONG:
        raise BrokenRule(Rule.NUMBER, number="longer than ten bytes")
    if failure == TOO_LARGE:
        raise BrokenRule(Rule.NUMBER, number="larger than 64 bits")
    raise BrokenRule(Rule.NUMBER, number="cut off")


def read_long(const unsigned char[::1] data not None, Py_ssize_t at):
    """Read the number at `at`.

    Returns:
        The number, and the index of the byte after it.

    Raises:
        BrokenRule: the bytes end within it, it has more than ten bytes, or more than 64 bits.
    """
    cdef long long value = 0
    cdef int used = TRUNCATED
    if 0 <= at < data.shape[0]:
        used = read_varint(&data[at], data.shape[0] - at, &value)
    if used <= 0:
        refuse(used)
    return value, at + used


def write_long(long long value):
    """One to ten bytes.

    Raises:
        OverflowError: the number has more than 64 bits.
    """
    cdef unsigned char[10] out
    return PyBytes_FromStringAndSize(<const char *>out, write_varint(out, value))
