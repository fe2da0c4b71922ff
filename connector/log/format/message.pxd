cdef class Block:
    cdef const unsigned char[::1] data
    cdef object metadata  # the event's MetadataValues; None where the target has no metadata columns


cdef class Message:
    cdef readonly object header
    cdef readonly int partition
    cdef readonly long long offset
    cdef Block block
    cdef Py_ssize_t start
    cdef Py_ssize_t changes
    cdef Py_ssize_t end
    cdef readonly bint for_others  # of a load for other targets: its rows are left out
    cdef list read_statements(self)
