# How the producer's position moves while it publishes.

from libc.stdint cimport int64_t

from connector.log.transaction.finished cimport Finished
from connector.log.writing.fragment cimport Fragment
from connector.log.gtid.gtid_range cimport GtidRange
from connector.log.transaction.source_position cimport SourcePosition

cdef class Progress:
    cdef object _prepared
    cdef str _reads, _server_uuid
    cdef Finished _finished
    cdef SourcePosition _resume
    cdef readonly object _gtids
    cdef GtidRange _range
    cdef object _open
    cdef readonly dict _tails
    cdef int64_t _barrier
    cdef bint _snapshot

    cpdef accept(self, Fragment fragment)
    cdef int64_t next(self)
    cdef see(self, str gtid)
    cdef gather(self)
