cdef list in_order(dict found)
