cdef class Block:
    cdef const unsigned char[::1] data
    cdef object stamp  # a Stamp, where rows of one event refer to it and the target wants to know which


cdef class Message:
    cdef readonly object header
    cdef readonly int partition
    cdef readonly long long offset
    cdef Block block
    cdef Py_ssize_t start
    cdef Py_ssize_t changes
    cdef Py_ssize_t end
    cdef list read_statements(self)
