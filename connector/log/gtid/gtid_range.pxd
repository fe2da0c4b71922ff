# GTIDs that follow each other.

cdef class GtidRange:
    cdef readonly str first
    cdef readonly long long count
    cdef long long next
    cdef Py_ssize_t prefix  # bytes of `first` up to its number

    cpdef begin(self, str gtid)
    cpdef bint goes_on(self, str gtid) except -1
