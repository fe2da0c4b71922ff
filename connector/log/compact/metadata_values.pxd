# What the transaction's columns hold in the rows of an event.


cdef class MetadataValues:
    cdef long long seqno
    cdef long long epoch
    cdef object told  # as Python values
    cdef list values  # each in Avro
    cdef bytes joined


cdef class MetadataValuesOf:
    cdef object columns
    cdef bint known
    cdef MetadataValues last
    cdef dict layouts
    cdef MetadataValues of(self, object header)
    cdef object beside(self, object layout)
