# How the producer's position moves while it publishes.

from libc.stdint cimport int64_t

from connector.thl.finished cimport Finished
from connector.thl.fragment cimport Fragment
from connector.thl.gtid_run cimport GtidRun
from connector.thl.place cimport SourcePosition

cdef class Progress:
    cdef object _prepared
    cdef str _reads, _server_uuid
    cdef Finished _finished
    cdef SourcePosition _resume
    cdef readonly object _gtids
    cdef GtidRun _run
    cdef object _open
    cdef readonly dict _tails
    cdef int64_t _barrier
    cdef bint _snapshot

    cpdef take(self, Fragment fragment)
    cdef int64_t next(self)
    cdef see(self, str gtid)
    cdef gather(self)
