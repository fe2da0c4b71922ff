from connector.reassemble.avro cimport Reader


cdef int skip_head(Reader r) except -1
cdef object read_head(Reader r)
