"""Divides the text of a JSON container, as MySQL prints it, into its parts: to change one of them."""

from libc.stdint cimport uint8_t


def parts(bytes text not None):
    """The parts of an object or an array.

    Args:
        text: the container, without spaces around it.

    Returns:
        Of an object each key with its quotes, and each value after it; of an array each element.

    Raises:
        ValueError: it is no container.
    """
    cdef const uint8_t* data = text
    cdef Py_ssize_t size = len(text)
    cdef Py_ssize_t at = 1
    cdef Py_ssize_t start
    cdef uint8_t close = b"]"
    found = []
    if size < 2 or data[0] != b"{" and data[0] != b"[":
        raise ValueError("no container begins")
    if data[0] == b"{":
        close = b"}"
    while True:
        while at < size and (data[at] == b" " or data[at] == b"," or data[at] == b":"):
            at += 1
        if at >= size - 1:
            break
        start = at
        at = past(data, at, size - 1)
        if at == start:
            raise ValueError("a container has more ends than beginnings")
        found.append(text[start:at])
    if data[size - 1] != close or close == b"}" and len(found) % 2:
        raise ValueError("a container is not whole")
    return found


cdef Py_ssize_t past(const uint8_t* data, Py_ssize_t at, Py_ssize_t end) except -1:
    """The end of the value that begins at a place."""
    cdef Py_ssize_t depth = 0
    while at < end:
        if data[at] == b'"':
            at += 1
            while at < end and data[at] != b'"':
                at += 2 if data[at] == b"\\" else 1
            if at >= end:
                raise ValueError("a string is not whole")
        elif data[at] == b"{" or data[at] == b"[":
            depth += 1
        elif data[at] == b"}" or data[at] == b"]":
            if depth == 0:
                return at
            depth -= 1
        elif depth == 0:
            while at < end and not ends(data[at]):
                at += 1
            return at
        at += 1
        if depth == 0:
            return at
    raise ValueError("a value is not whole")


cdef bint ends(uint8_t byte) noexcept nogil:
    """True after a number or a word."""
    return byte == b"," or byte == b":" or byte == b" " or byte == b"]" or byte == b"}"
