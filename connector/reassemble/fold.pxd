# A table whose images do not have all columns: what is known of each row since the run began.

from connector.reassemble.avro cimport Reader

cdef class Row:
    cdef list values  # the bytes of each column's value, None where it is as it was
    cdef bytes base  # the key that it had before the run; None: it was inserted since

cdef class Fold:
    cdef readonly object layout
    cdef bytes before, after  # the columns that the images of the newest head have; empty: all
    cdef dict rows  # key → Row: those that are there now
    cdef dict touched  # keys that were there before the run
    cdef set gone  # keys that are not there now
    cdef dict copies  # without a key: image → inserts minus deletes
    cdef list added  # without a key: inserts with columns absent
    cdef int columns(self, bytes before, bytes after) except -1
    cdef int row(self, unsigned char action, Reader r) except -1
    cdef bint sealed(self, unsigned char action) except -1
    cdef object take(self, long long changes)
    cdef list image(self, Reader r, bytes present, bint expected)
    cdef bytes key(self, list values)
    cdef int keyed(self, unsigned char action, list old, list new) except -1
    cdef int counted(self, unsigned char action, list old, list new) except -1
    cdef Row found(self, bytes key, list old, str what)
    cdef object keyed_net(self, long long changes)
