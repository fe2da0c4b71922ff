"""Reads Avro's encoding of bytes that may be damaged; the functions that call no Python are in `avro_reader.pxd`."""

from cpython.bytes cimport PyBytes_FromStringAndSize


cdef class Reader:
    """A position in bytes, and the end that it may not pass."""


cdef bytes read_bytes(Reader r):
    cdef long long size = read_long(r)
    cdef Py_ssize_t start = r.at
    skip(r, size)
    return PyBytes_FromStringAndSize(<const char *>&r.data[start], <Py_ssize_t>size) if size else b""


cdef str read_text(Reader r):
    return read_bytes(r).decode()


cdef dict read_map(Reader r):
    """A map of strings."""
    cdef long long count
    found = {}
    while count := read_block(r):
        for _ in range(count):
            key = read_text(r)
            found[key] = read_text(r)
    return found
