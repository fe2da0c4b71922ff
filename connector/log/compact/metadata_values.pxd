# The values of the metadata columns in the rows of one event.


cdef class MetadataValues:
    cdef long long seqno
    cdef long long epoch
    cdef object python  # as Python values
    cdef list values  # each in Avro
    cdef bytes joined


cdef class MetadataValuesOf:
    cdef object columns
    cdef bint known
    cdef MetadataValues last
    cdef dict layouts
    cdef MetadataValues of(self, object header)
    cdef object beside(self, object layout)
