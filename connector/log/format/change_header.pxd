from connector.log.format.avro_reader cimport Reader

cdef int skip_changes(Reader r) except -1
cdef int skip_change(Reader r) except -1
cdef int skip_change_header(Reader r) except -1
cdef tuple read_change_header(Reader r)
