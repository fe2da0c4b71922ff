# Row changes' heads, encoded once.

cdef class Table:
    cdef object layout
    cdef readonly str shard
    cdef readonly bint bookkeeping
    cdef list heads
    cdef dict parts  # action and bitmaps → head
    cdef bytes head(self, object action, bytes before, bytes after)
    cdef bytes part(self, object action, bytes before, bytes after)

cdef class ChangeHeaders:
    cdef object sharding
    cdef dict kept
    cdef Table newest
    cdef Table of(self, object layout)
