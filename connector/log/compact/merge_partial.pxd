# A table whose images do not have all columns: what is known of each row since the run began.

from connector.log.format.avro_reader cimport Reader
from connector.log.compact.metadata_values cimport MetadataValues, MetadataValuesOf

cdef class Row:
    cdef list values  # the bytes of each column's value, None where it is as it was
    cdef bytes base  # the key that it had before the run; None: it was inserted since
    cdef MetadataValues stamp  # of the event that touched it last, where that is asked for

cdef class PartialMerger:
    cdef readonly object layout
    cdef MetadataValuesOf stamps  # None where the target has no columns of the transaction
    cdef MetadataValues stamp  # of the newest row's event
    cdef bytes before, after  # the columns that the images of the newest head have; empty: all
    cdef dict rows  # key → Row: those that are there now
    cdef dict touched  # keys that were there before the run
    cdef set gone  # keys that are not there now
    cdef dict there  # without a key: image → the stamp of each row that came and is there
    cdef dict lost  # and how many go of those that were there before the run
    cdef list added  # without a key: inserts with columns absent
    cdef int columns(self, bytes before, bytes after) except -1
    cdef int row(self, unsigned char action, Reader r, MetadataValues stamp) except -1
    cdef bint sealed(self, unsigned char action) except -1
    cdef object take(self, long long changes)
    cdef list image(self, Reader r, bytes present, bint expected)
    cdef bytes key(self, list values)
    cdef int keyed(self, unsigned char action, list old, list new) except -1
    cdef int counted(self, unsigned char action, list old, list new) except -1
    cdef int came(self, bytes values) except -1
    cdef int went(self, bytes values) except -1
    cdef bytes whole(self, list values, MetadataValues stamp)
    cdef bytes partial(self, list values, MetadataValues stamp, bytes base)
    cdef Row found(self, bytes key, list old, str what)
    cdef object keyed_net(self, long long changes)
