# A fragment's bytes, and what all fragments of an event say.

cdef enum:
    ABSENT = -1  # an outcome that is not known yet

cdef class EventHeader:
    cdef readonly long long seqno
    cdef long long epoch, prev_seqno, last_barrier, server_id, thread_id, last_committed, sequence_number, commit_time
    cdef int kind, outcome
    cdef bint timed
    cdef str shard, gtid, event_id
    cdef bytes metadata

cdef class FragmentWriter:
    cdef unsigned char *_data
    cdef Py_ssize_t _used, _size
    cdef bytes _opening
    cdef str _source_id
    cdef bytes whole(self, EventHeader header, long long rows, list row_headers, list changes)
    cdef int _room(self, Py_ssize_t more) except -1
    cdef int _raw(self, const void *data, Py_ssize_t size) except -1
    cdef int _bytes(self, bytes data) except -1
    cdef int _byte(self, unsigned char value) except -1
    cdef int _long(self, long long value) except -1
    cdef int _string(self, str text) except -1
    cdef int _optional_string(self, str text) except -1
    cdef int _header(self, EventHeader header, int fragno, bint last, long long rows) except -1
    cdef int _changes(self, list changes) except -1
    cdef int _slice(self, data, Py_ssize_t start, Py_ssize_t stop) except -1
    cdef bytes _closed(self)
