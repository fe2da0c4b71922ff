from connector.log.format.avro_reader cimport Reader


cdef int skip_head(Reader r) except -1
cdef tuple read_head(Reader r)
