"""Finds the next plausible event in a damaged log."""

from libc.stdint cimport uint32_t, uint64_t

from zlib import crc32

from connector.mysql.binlog.event cimport HEADER

cdef enum:
    CHECKSUM = 4


cdef inline uint32_t number(const unsigned char[::1] log, Py_ssize_t at):
    return log[at] | <uint32_t>log[at + 1] << 8 | <uint32_t>log[at + 2] << 16 | <uint32_t>log[at + 3] << 24


def next_event(const unsigned char[::1] log, Py_ssize_t start, bint checksum):
    """Finds the next plausible event at `start` or after it.

    An event is plausible if its length stays within the log, its stored end is its end, and its checksum is right. In a
    log without checksums a plausible event or the log's end must follow, too.

    Args:
        log: the whole file.
        start: the first offset to look at.
        checksum: true if events end with a CRC-32.

    Returns:
        The offset; -1 if there is none.
    """
    cdef Py_ssize_t at, end
    cdef Py_ssize_t size = log.shape[0]
    for at in range(max(start, 0), size - HEADER + 1):
        end = plausible_end(log, at, checksum)
        if end < 0:
            continue
        if checksum:
            if crc32(log[at : end - CHECKSUM]) == number(log, end - CHECKSUM):
                return at
        elif end == size or plausible_end(log, end, False) >= 0:
            return at
    return -1


cdef Py_ssize_t plausible_end(const unsigned char[::1] log, Py_ssize_t at, bint checksum):
    """The end of an event by its header; -1 if the header contradicts itself."""
    cdef Py_ssize_t size
    if log.shape[0] - at < HEADER:
        return -1
    size = number(log, at + 9)
    if size < HEADER + (CHECKSUM if checksum else 0) or size > log.shape[0] - at:
        return -1
    if <uint32_t>(<uint64_t>(at + size)) != number(log, at + 13):
        return -1
    return at + size
