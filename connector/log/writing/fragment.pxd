# What `encode` gives to `publish`.

from libc.stdint cimport int64_t

from connector.log.transaction.finished cimport Finished
from connector.log.transaction.source_position cimport SourcePosition

cdef class Fragment:
    cdef readonly int partition, fragno
    cdef readonly bytes key, value
    cdef readonly int64_t seqno
    cdef public Finished finished
    cdef public SourcePosition resume
    cdef public bint barrier
    cdef public object commit_time
