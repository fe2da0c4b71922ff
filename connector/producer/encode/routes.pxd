# The route of a shard's events.

from libc.stdint cimport int64_t

cdef class Route:
    cdef readonly int64_t server_id
    cdef readonly str shard
    cdef readonly int partition
    cdef readonly bytes key, metadata
    cdef readonly bint bookkeeping, definition, barrier
    cdef readonly dict facts
