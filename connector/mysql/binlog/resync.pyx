"""The next event that can be believed in a log that is damaged."""

from libc.stdint cimport uint32_t, uint64_t

from zlib import crc32

cdef enum:
    HEADER = 19
    CHECKSUM = 4


cdef inline uint32_t number(const unsigned char[::1] log, Py_ssize_t at):
    return log[at] | <uint32_t>log[at + 1] << 8 | <uint32_t>log[at + 2] << 16 | <uint32_t>log[at + 3] << 24


def next_event(const unsigned char[::1] log, Py_ssize_t start, bint checksum):
    """Where the next event begins, at `start` or behind it.

    It is believed when its length stays within the log, it says itself that it ends where it does, and its
    checksum is right. In a log without checksums what follows it must be believable too, or the log's end.

    Args:
        log: the whole file.
        start: where to begin to look.
        checksum: whether events have a CRC-32 behind them.

    Returns:
        The offset; -1 if there is none.
    """
    cdef Py_ssize_t at, end
    cdef Py_ssize_t size = log.shape[0]
    for at in range(max(start, 0), size - HEADER + 1):
        end = believed(log, at, checksum)
        if end < 0:
            continue
        if checksum:
            if crc32(log[at : end - CHECKSUM]) == number(log, end - CHECKSUM):
                return at
        elif end == size or believed(log, end, False) >= 0:
            return at
    return -1


cdef Py_ssize_t believed(const unsigned char[::1] log, Py_ssize_t at, bint checksum):
    """Where the event at this place ends, by its header; -1 if that contradicts itself."""
    cdef Py_ssize_t size
    if log.shape[0] - at < HEADER:
        return -1
    size = number(log, at + 9)
    if size < HEADER + (CHECKSUM if checksum else 0) or size > log.shape[0] - at:
        return -1
    if <uint32_t>(<uint64_t>(at + size)) != number(log, at + 13):
        return -1
    return at + size
