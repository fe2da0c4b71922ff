# What the transaction's columns hold in the rows of an event.


cdef class Stamp:
    cdef long long seqno
    cdef long long epoch
    cdef object told  # as Python values
    cdef list values  # each in Avro
    cdef bytes joined


cdef class Stamps:
    cdef object columns
    cdef bint known
    cdef Stamp last
    cdef dict layouts
    cdef Stamp of(self, object header)
    cdef object beside(self, object layout)
