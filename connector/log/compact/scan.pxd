from connector.log.format.avro_reader cimport Reader
from connector.log.format.message cimport Block, Headers, Message


cdef struct Place:
    Py_ssize_t start  # of the message in its block
    Py_ssize_t changes
    Py_ssize_t end
    Py_ssize_t gtid  # 0 where there is none
    Py_ssize_t gtid_end
    int partition
    long long offset
    long long seqno
    long long epoch
    long long prev_seqno
    long long last_barrier
    long long newest_barrier
    long long rows
    long long commit_time  # 0 where there is none
    bint plain


cdef class Places:
    cdef Place* items
    cdef Py_ssize_t count
    cdef Block block
    cdef object offsets
    cdef Scanner scanner
    cdef Place* at(self, Py_ssize_t index) except NULL


cdef class Messages:
    cdef Places places
    cdef Py_ssize_t first
    cdef Py_ssize_t end
    cdef Place* at(self, Py_ssize_t index) except NULL
    cdef Message one(self, Py_ssize_t index)


cdef class Scanner:
    cdef readonly str topic
    cdef Headers headers
    cdef bytes metadata  # the bytes of the map that was met last
    cdef bint rows_only  # and whether it lets an event be nothing but its rows
    cdef bint ours  # and whether it tells our schema
    cdef int place(self, Place* place, Reader r) except -1
    cdef bint only_rows(self, Reader r) except -1
