# Row changes' headers, encoded once.

cdef class TableHeaders:
    cdef object layout
    cdef readonly str shard
    cdef readonly bint bookkeeping
    cdef list headers
    cdef dict parts  # action and bitmaps → header
    cdef bytes header(self, object action, bytes before, bytes after)
    cdef bytes part(self, object action, bytes before, bytes after)

cdef class ChangeHeaders:
    cdef object sharding
    cdef dict kept
    cdef TableHeaders newest
    cdef TableHeaders of(self, object layout)
