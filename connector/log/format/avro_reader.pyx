"""Where a reader stands in a message's bytes; what it can read is in `avro.pxd`."""


cdef class Reader:
    """A place in bytes and the end it may not pass."""
