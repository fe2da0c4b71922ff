# Row changes' headers, encoded once.

from libc.stdint cimport int64_t

cdef class TableHeaders:
    cdef object layout
    cdef readonly str shard
    cdef readonly bint bookkeeping
    cdef list headers
    cdef int64_t rows, size  # of events that have ended since the counts were taken
    cdef dict parts  # action and bitmaps → header
    cdef bytes header(self, object action, bytes before, bytes after)
    cdef bytes part(self, object action, bytes before, bytes after)

cdef class ChangeHeaders:
    cdef object sharding
    cdef dict kept
    cdef TableHeaders newest
    cdef list counted  # tables with counts
    cdef int count(self, TableHeaders table, int64_t rows, int64_t size) except -1
    cdef TableHeaders of(self, object layout)
